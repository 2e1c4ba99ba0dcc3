/*
 * The drain state of one replica: what a drain or an undrain makes of it, and the logical timestamps that order the
 * changes of several gateways.
 *
 * It never knows who keeps the states, where they are stored, or which workers respect them.
 * Begin with next-drain-state.ts.
 */

export { isLogicalTimestamp, newLogicalTimestamp, nextLogicalTimestamp } from './logical-timestamp.ts';
export {
  type ChangeDetails,
  type DrainChange,
  type DrainState,
  isRamp,
  MAX_RAMP_MS,
  NEVER_DRAINED,
  nextDrainState,
} from './next-drain-state.ts';
