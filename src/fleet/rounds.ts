/** Work that is done in rounds, one after the other. */
export interface Rounds {
  /** Begins the next round at once, or when the present one is over. */
  wake(): void;
  /** Resolves when the present round is over; there is no other. */
  stop(): Promise<void>;
}

/** How soon a round may follow another, however often somebody is impatient. */
const AT_ONCE_MS = 10;

/** How soon it may where nobody is, and the one before took long. */
const LEAST_PAUSE_MS = 50;

/** Begins. `everyMs`: from the beginning of a round to that of the next one. A round must not reject. */
export function startRounds(round: () => Promise<void>, everyMs: () => number): Rounds {
  let timer: NodeJS.Timeout | undefined;
  let present: Promise<void> | null = null;
  let isWanted = false;
  let isStopped = false;

  function schedule(afterMs: number): void {
    if (isStopped) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isWanted = false;
      const beganAtMs = performance.now();
      present = round().then(() => {
        present = null;
        const restMs = everyMs() - (performance.now() - beganAtMs);
        schedule(isWanted ? AT_ONCE_MS : Math.max(LEAST_PAUSE_MS, restMs));
      });
    }, afterMs);
    timer.unref();
  }

  schedule(0);
  return {
    wake() {
      isWanted = true;
      if (present === null) schedule(AT_ONCE_MS);
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await present;
    },
  };
}
