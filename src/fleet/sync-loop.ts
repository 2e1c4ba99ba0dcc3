/** A loop that runs one sync after another. */
export interface SyncLoop {
  /** Starts the next sync at once, or right after the current one. */
  wake(): void;
  /** Starts no further sync. Resolves when the current one has ended. */
  stop(): Promise<void>;
}

/** The pause before a sync that `wake` asked for, however often it is called. */
const WAKE_PAUSE_MS = 10;

/** The shortest pause between syncs that no caller asked for, even if the last one took long. */
const MIN_PAUSE_MS = 50;

/** Starts the loop. `intervalMs` is the time from the start of one sync to the start of the next. `sync` must not reject. */
export function startSyncLoop(sync: () => Promise<void>, intervalMs: () => number): SyncLoop {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> | null = null;
  let isWakeRequested = false;
  let isStopped = false;

  function schedule(afterMs: number): void {
    if (isStopped) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isWakeRequested = false;
      const startedAtMs = performance.now();
      current = sync().then(() => {
        current = null;
        const remainingMs = intervalMs() - (performance.now() - startedAtMs);
        schedule(isWakeRequested ? WAKE_PAUSE_MS : Math.max(MIN_PAUSE_MS, remainingMs));
      });
    }, afterMs);
    timer.unref();
  }

  schedule(0);
  return {
    wake() {
      isWakeRequested = true;
      if (current === null) schedule(WAKE_PAUSE_MS);
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}
