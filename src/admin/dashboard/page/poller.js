/** The poll interval, and the wait after a failure, which doubles up to the longest. */
const INTERVAL_MS = 2_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;

/**
 * Polls with one call at a time. Pauses while the tab is hidden, and polls at once when it is visible again. `poll`
 * resolves to whether to continue, to continue after a growing wait, or to stop.
 */
export class Poller {
  /** @type {() => Promise<'live' | 'failed' | 'stop'>} */
  #poll;
  /** @type {number | undefined} */
  #timer;
  #isRunning = false;
  #isPolling = false;
  #failures = 0;

  /** @param {() => Promise<'live' | 'failed' | 'stop'>} poll */
  constructor(poll) {
    this.#poll = poll;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) window.clearTimeout(this.#timer);
      else if (this.#isRunning) void this.pollNow();
    });
  }

  /** Starts with a poll at once. */
  start() {
    this.#isRunning = true;
    this.#failures = 0;
    void this.pollNow();
  }

  /** Stops. A call that is running schedules no further one. */
  stop() {
    this.#isRunning = false;
    window.clearTimeout(this.#timer);
  }

  /** Polls without waiting for the interval. */
  async pollNow() {
    window.clearTimeout(this.#timer);
    if (this.#isPolling) return;
    this.#isPolling = true;
    const outcome = await this.#poll().finally(() => {
      this.#isPolling = false;
    });
    this.#failures = outcome === 'failed' ? this.#failures + 1 : 0;
    if (outcome === 'stop') this.#isRunning = false;
    if (!this.#isRunning || document.hidden) return;
    this.#timer = window.setTimeout(() => void this.pollNow(), this.nextWaitMs);
  }

  /** The wait before the next poll. */
  get nextWaitMs() {
    if (this.#failures === 0) return INTERVAL_MS;
    return Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), LONGEST_RETRY_MS);
  }
}
