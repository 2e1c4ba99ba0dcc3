import { getEnvironmentData } from 'node:worker_threads';

/*
 * Loaded into a process and its threads with NODE_OPTIONS: the clock of the day, instead of that of the machine. Nothing of
 * the gateway itself is changed.
 */

/** Under which name the threads of a process get the memory that holds its clock: epoch milliseconds. */
export const CLOCK = 'clock of the day';

const memory = getEnvironmentData(CLOCK);
const aheadMs = Number(process.env.DAY_AHEAD_MS ?? 0);
const now = Date.now;
if (memory instanceof Float64Array) Date.now = () => memory[0] ?? 0;
else if (aheadMs !== 0) Date.now = () => now() + aheadMs;

/** The environment that loads this file. `aheadMs`: how far the clock is ahead of that of the machine. */
export const toClockEnvironment = (aheadMs = 0) => ({
  NODE_OPTIONS: `--import=${import.meta.url}`,
  DAY_AHEAD_MS: String(Math.round(aheadMs)),
});
