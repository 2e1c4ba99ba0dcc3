import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for the work to be done, but no longer than so: it goes on. Rejects as the work does, while it is awaited. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const isOver = new AbortController();
  const tooLong = sleep(ms, undefined, { ref: false, signal: isOver.signal }).catch(() => undefined);
  try {
    await Promise.race([work, tooLong]);
  } finally {
    isOver.abort();
  }
}
