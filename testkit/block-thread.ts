/**
 * Lets this thread do nothing else for so long, as if it were busy, without taking the CPU of others: its event loop counts as
 * active meanwhile.
 */
export function blockThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
