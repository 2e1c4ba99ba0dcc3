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

/** What `work` resolves to, or undefined after `ms`; the work then goes on. Rejects if the work rejects in time. */
export async function withDeadline<Result>(
  ms: number,
  work: Promise<Result>,
  clock: Clock,
): Promise<Result | undefined> {
  const finished = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, finished.signal).then(() => undefined)]);
  } finally {
    finished.abort();
  }
}
