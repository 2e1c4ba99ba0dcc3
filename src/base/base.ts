/*
 * The ground floor of src/: small things that any room may need and none owns. Errors that end a start, calls in turn,
 * checks at an interval, names that are alike.
 *
 * It never knows what uses it: no configuration, no replica, no record.
 * Each file stands alone: begin with the one whose name you need.
 */

export { atMostOncePerMinute } from './at-most-once-per-minute.ts';
export { closestName, isSameName } from './closest-name.ts';
export { explainFileCode, toFileProblem } from './file-problem.ts';
export { inParallel } from './in-parallel.ts';
export { createInTurn } from './in-turn.ts';
export { RepeatedCheck } from './repeated-check.ts';
export { orStartError, StartError, tryCertificates, UnusableSettingError } from './start-error.ts';
