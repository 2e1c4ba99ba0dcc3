/** Time as a collaborator: tests use a virtual clock. */
export interface Clock {
  /** Milliseconds of a monotonic clock; only differences have a meaning. */
  nowMs(): number;
  /** Resolves after `ms` (never by itself for Infinity), or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),

  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(wake, ms);
      // The listener is removed with the sleep: some of these signals live as long as the process.
      signal.addEventListener('abort', wake, { once: true });
      function wake(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      }
    }),
};

/**
 * Waits for the work, at most `ms`; the work itself goes on. Resolves with its result, or with null if it takes longer.
 * Rejects as the work does.
 */
export async function waitAtMost<T>(
  ms: number,
  work: Promise<T>,
  clock: Clock = systemClock,
): Promise<T | null> {
  const isOver = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, isOver.signal).then(() => null)]);
  } finally {
    isOver.abort();
  }
}
