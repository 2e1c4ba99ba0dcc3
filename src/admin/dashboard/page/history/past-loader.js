/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { TimelineJson } from '../../../routes/history/timeline.ts' */
/** @import { Range } from './range.js' */
import { fetchTimeline, fetchUsage } from '../app/api.js';
import { session } from '../app/session.js';
import { LIVE } from './range.js';

/**
 * What the history knows of a range. `usage` is null for the live range, whose figures are those of the overview.
 * `problem`: why it is not known, or not all of it; null: nothing is wrong.
 * @typedef {object} Past
 * @property {Range} range
 * @property {{ readonly total: UsageJson, readonly models: UsageJson, readonly tenants: UsageJson, readonly reasons: UsageJson } | null} usage
 * @property {TimelineJson | null} timeline
 * @property {string | null} problem
 */

/** Where points close to each other are too much for a history, they sum hours. */
const COARSE = { step: '1h', stepMs: 3_600_000 };

/** Loads what the history knows of a range, and again as time passes. A hidden tab loads nothing. */
export class PastLoader {
  #pollIntervalMs;
  #onLoad;
  #range = LIVE;
  #isRunning = false;
  #isLoading = false;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {number} pollIntervalMs
   * @param {(past: Past) => void} onLoad called with each answer
   */
  constructor(pollIntervalMs, onLoad) {
    this.#pollIntervalMs = pollIntervalMs;
    this.#onLoad = onLoad;
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && this.#isRunning) void this.#load();
    });
  }

  /** Loads this range from now on, at once if it is another one. @param {Range} range */
  show(range) {
    const isAnother = this.#range !== range || !this.#isRunning;
    this.#range = range;
    this.#isRunning = true;
    if (isAnother) void this.#load();
  }

  /** Loads without waiting for the interval: something has just happened. */
  loadNow() {
    if (this.#isRunning) void this.#load();
  }

  /** Loads nothing more. */
  stop() {
    this.#isRunning = false;
    window.clearTimeout(this.#timer);
  }

  async #load() {
    window.clearTimeout(this.#timer);
    if (this.#isLoading) return;
    this.#isLoading = true;
    const range = this.#range;
    const past = await load(range, session.token ?? '').finally(() => {
      this.#isLoading = false;
    });
    if (!this.#isRunning) return;
    if (this.#range !== range) {
      await this.#load();
      return;
    }
    this.#onLoad(past);
    this.#schedule();
  }

  #schedule() {
    window.clearTimeout(this.#timer);
    if (!this.#isRunning || document.hidden) return;
    const waitMs = this.#range.everyPolls * this.#pollIntervalMs;
    this.#timer = window.setTimeout(() => void this.#load(), waitMs);
  }
}

/**
 * Asks one thing after the other: the history answers one at a time.
 * @param {Range} range
 * @param {string} token
 * @returns {Promise<Past>}
 */
async function load(range, token) {
  // A time so long ago is one on the gateway's clock.
  const since = range.name;
  const timeline = await fetchTimeline(token, since);
  if (timeline.kind !== 'ok') return { range, usage: null, timeline: null, problem: toProblem(timeline) };
  const known = { range, usage: null, timeline: timeline.value, problem: null };
  if (range === LIVE) return known;
  const fine = await fetchUsage(token, { since, step: range.step });
  const isTooFine = fine.kind === 'failed' && range.stepMs < COARSE.stepMs && range.ms > COARSE.stepMs;
  const total = isTooFine ? await fetchUsage(token, { since, step: COARSE.step }) : fine;
  /** @type {UsageJson[]} */
  const answers = [];
  for (const by of ['model', 'tenant', 'replica,model']) {
    const answer = total.kind === 'ok' ? await fetchUsage(token, { since, by }) : total;
    if (answer.kind !== 'ok') return { ...known, problem: toProblem(answer) };
    answers.push(answer.value);
  }
  const [models, tenants, reasons] = answers;
  if (total.kind !== 'ok' || models === undefined || tenants === undefined || reasons === undefined)
    return known;
  const usage = { total: total.value, models, tenants, reasons };
  return { ...known, usage, range: isTooFine ? { ...range, ...COARSE } : range };
}

/** @param {{ readonly kind: string, readonly message?: string }} result */
function toProblem({ message = 'The token was rejected.' }) {
  return message;
}
