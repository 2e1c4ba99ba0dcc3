/*
 * Facts about replicas that all threads must know at once, in shared memory: drained, in flight, turns, reachability,
 * waiting requests; and the tables of the rooms beside it: ramps, silence, health, GPU time.
 *
 * It never knows who reads or writes them.
 * Begin with shared-state.ts, which has the tables of one gateway.
 */

export {
  allocateSharedState,
  CURSORS,
  MAX_CURSORS,
  MAX_REPLICAS,
  SharedState,
  type SharedStateMemory,
} from './shared-state.ts';
export { isBefore, type WaitTable } from './wait-table.ts';
