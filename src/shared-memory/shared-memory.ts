/*
 * Tables of numbers that all threads of a gateway share, and the clock by which they agree on time.
 *
 * It never knows what the numbers mean.
 * Begin with shared-table.ts.
 */

export { createSharedClock } from './shared-clock.ts';
export { openTables, type SharedTable, sizeOfTables, tryIncrement } from './shared-table.ts';
