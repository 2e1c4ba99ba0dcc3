/*
 * Silence: how long the running streams of each replica have been without a byte, in shared memory, beside how long is
 * usual for them.
 *
 * It never knows what follows from a silence: #replicas/health judges it, and learns what is usual (stream-silence-learner.ts).
 * Begin with silence-table.ts.
 */

export { SILENT_AFTER, SilenceLimits, toSilenceLimitShapes } from './silence-limits.ts';
export { type Silence, SilenceTable, type Streams, toSampleMs, toSilenceShapes } from './silence-table.ts';
export { SilentHolders, toSilentHolderShapes } from './silent-holders.ts';
