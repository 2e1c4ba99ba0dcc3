/*
 * A directory of one process: its lock, and small files in it that are replaced as a whole and set aside when they are
 * damaged.
 *
 * It never knows what the files say, nor whether a gateway or a rollout uses the directory.
 * Begin with state-file.ts and state-lock.ts.
 */

export { createStateFile, type OnStateWrite, type Parsed, type StateFile } from './state-file.ts';
export { lockState, StateInUseError, type StateLock } from './state-lock.ts';
