/*
 * Drains, by name of the replica, and the file that keeps them over a restart.
 *
 * It never knows whether a replica of that name exists.
 * Begin with replica-drains.ts.
 */

export { createDrainFile } from './drain-file.ts';
export { forgetGoneNames, KEPT_GONE_MS, LOOK_FOR_GONE_MS, logForgotten } from './forget-gone.ts';
export { Drains } from './replica-drains.ts';
