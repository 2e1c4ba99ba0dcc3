/*
 * Responses that a replica makes in the background: what it has accepted and not finished is followed until it
 * ends, so that a drain waits for it and its record has its tokens.
 *
 * It never knows a client, and keeps no text.
 * Begin with background-work.ts, then decide-follow.ts.
 */

export { createBackgroundFile } from './background-file.ts';
export { BackgroundWork } from './background-work.ts';
