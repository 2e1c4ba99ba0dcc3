/** The wait after a failure doubles up to this many poll intervals. */
const LONGEST_RETRY = 8;
/** A drain is followed this many times as often. */
const HURRY = 4;
/** A hidden tab shows only its title, so it polls this many times as rarely. */
const HIDDEN = 30;

/** What a poll resolves to: continue, continue soon, continue after a growing wait, or stop. */
/** @typedef {'live' | 'hurry' | 'failed' | 'stop'} Outcome */

/** Polls with one call at a time; rarely while the tab is hidden, and at once when it is visible again. */
export class Poller {
  /** @type {() => Promise<Outcome>} */
  #poll;
  /** @type {number | undefined} */
  #timer;
  #intervalMs;
  /** @type {Outcome} */
  #last = 'live';
  #isRunning = false;
  #isPolling = false;
  #failures = 0;

  /**
   * @param {() => Promise<Outcome>} poll
   * @param {number} intervalMs
   */
  constructor(poll, intervalMs) {
    this.#poll = poll;
    this.#intervalMs = intervalMs;
    document.addEventListener('visibilitychange', () => {
      if (!this.#isRunning || this.#isPolling) return;
      if (document.hidden) this.#schedule();
      else void this.pollNow();
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
    this.#last = outcome;
    this.#failures = outcome === 'failed' ? this.#failures + 1 : 0;
    if (outcome === 'stop') this.#isRunning = false;
    if (this.#isRunning) this.#schedule();
  }

  #schedule() {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.pollNow(), this.#nextWaitMs);
  }

  /** The wait before the next poll. */
  get #nextWaitMs() {
    if (document.hidden) return this.#intervalMs * HIDDEN;
    if (this.#last === 'hurry') return this.#intervalMs / HURRY;
    if (this.#failures === 0) return this.#intervalMs;
    return this.#intervalMs * Math.min(2 ** (this.#failures - 2), LONGEST_RETRY);
  }
}
