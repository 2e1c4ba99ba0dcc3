/*
 * Tables of numbers that all threads of a gateway share, limits on what they hold together, and the clock by which they
 * agree on time.
 *
 * It never knows what the numbers mean.
 * Begin with shared-table.ts.
 */

export { createSharedClock } from './shared-clock.ts';
export { allocateLimit, clearLimit, type LimitMemory, readLimit, SharedLimit } from './shared-limit.ts';
export { openTables, type SharedTable, sizeOfTables, tryIncrement } from './shared-table.ts';
