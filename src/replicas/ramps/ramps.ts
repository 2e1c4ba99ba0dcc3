/*
 * Ramps: the share of turns of a replica that grows after an undrain, in shared memory.
 *
 * It never knows who begins a ramp.
 * Begin with ramp.ts.
 */

export { hasTakenBack } from './ramp.ts';
export { RAMP_COLUMNS, type Ramp, type RampProgress, RampTable } from './ramp-table.ts';
