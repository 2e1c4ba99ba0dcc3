/** Time as a collaborator, so that a test can do without it. */
export interface Clock {
  /** Milliseconds of a monotonic clock; only differences mean anything. */
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
      // The listener goes with the sleep: some of these signals live as long as the process.
      signal.addEventListener('abort', wake, { once: true });
      function wake(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      }
    }),
};
