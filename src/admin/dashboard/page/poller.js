/** How often figures are asked for, and how long after a failure: doubling, up to the longest. */
const INTERVAL_MS = 2_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;

/**
 * Asks again and again, one call at a time; not while the tab is hidden, and at once when it is seen again.
 * `ask` resolves to whether to go on, after a failure with longer and longer waits, or to stop.
 */
export class Poller {
  /** @type {() => Promise<'live' | 'failed' | 'stop'>} */
  #ask;
  /** @type {number | undefined} */
  #timer;
  #isRunning = false;
  #isAsking = false;
  #failures = 0;

  /** @param {() => Promise<'live' | 'failed' | 'stop'>} ask */
  constructor(ask) {
    this.#ask = ask;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) window.clearTimeout(this.#timer);
      else if (this.#isRunning) void this.askNow();
    });
  }

  /** Begins, with a call at once. */
  start() {
    this.#isRunning = true;
    this.#failures = 0;
    void this.askNow();
  }

  /** Ends. An answer under way changes nothing any more. */
  stop() {
    this.#isRunning = false;
    window.clearTimeout(this.#timer);
  }

  /** Does not wait for its turn. */
  async askNow() {
    window.clearTimeout(this.#timer);
    if (this.#isAsking) return;
    this.#isAsking = true;
    const outcome = await this.#ask().finally(() => {
      this.#isAsking = false;
    });
    this.#failures = outcome === 'failed' ? this.#failures + 1 : 0;
    if (outcome === 'stop') this.#isRunning = false;
    if (!this.#isRunning || document.hidden) return;
    this.#timer = window.setTimeout(() => void this.askNow(), this.nextWaitMs);
  }

  /** How long it waits until it asks again. */
  get nextWaitMs() {
    if (this.#failures === 0) return INTERVAL_MS;
    return Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), LONGEST_RETRY_MS);
  }
}
