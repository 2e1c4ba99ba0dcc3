/**
 * The ranges of time that charts and tables can show. The shortest is what the gateway has in memory, the others come from
 * its history. Pure.
 */

/** @typedef {'5m' | '1h' | '1d' | '7d'} RangeName */

/**
 * `words`: what it is called in a sentence. `step`: what one point of a chart sums, as the admin API writes it.
 * `everyPolls`: it is loaded again after so many polls.
 * @typedef {{ readonly name: RangeName, readonly title: string, readonly words: string, readonly ms: number,
 *   readonly step: string, readonly stepMs: number, readonly everyPolls: number }} Range
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** @type {readonly [live: Range, ...past: Range[]]} */
export const RANGES = [
  {
    name: '5m',
    title: '5 minutes',
    words: 'the last 5 minutes',
    ms: 5 * MINUTE_MS,
    step: '5s',
    stepMs: 5_000,
    everyPolls: 3,
  },
  {
    name: '1h',
    title: '1 hour',
    words: 'the last hour',
    ms: HOUR_MS,
    step: '1m',
    stepMs: MINUTE_MS,
    everyPolls: 10,
  },
  {
    name: '1d',
    title: '1 day',
    words: 'the last 24 hours',
    ms: DAY_MS,
    step: '15m',
    stepMs: 15 * MINUTE_MS,
    everyPolls: 30,
  },
  {
    name: '7d',
    title: '7 days',
    words: 'the last 7 days',
    ms: 7 * DAY_MS,
    step: '1h',
    stepMs: HOUR_MS,
    everyPolls: 150,
  },
];

/** The range whose figures are those of now. */
export const LIVE = RANGES[0];

/**
 * The range of this name; the live one if there is none.
 * @param {string | null} name
 * @returns {Range}
 */
export function toRange(name) {
  return RANGES.find((range) => range.name === name) ?? LIVE;
}

/** Distances between marks on an axis of time. */
const TICK_STEPS_MS = [1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS);
const TICK_STEPS_H_MS = [1, 2, 3, 6, 12, 24, 48, 168].map((hours) => hours * HOUR_MS);

/**
 * Round times of the reader's clock in a span, at most so many.
 * @param {Span} span
 * @param {number} most
 * @returns {readonly number[]}
 */
export function toTicks({ fromMs, untilMs }, most) {
  const steps = [...TICK_STEPS_MS, ...TICK_STEPS_H_MS];
  const step = steps.find((each) => (untilMs - fromMs) / each <= most) ?? steps.at(-1) ?? DAY_MS;
  // Midnight is a round time where the reader is.
  const offsetMs = -new Date(fromMs).getTimezoneOffset() * MINUTE_MS;
  /** @type {number[]} */
  const ticks = [];
  for (let at = Math.ceil((fromMs + offsetMs) / step) * step - offsetMs; at < untilMs; at += step)
    // After a change of the clocks it is near midnight.
    ticks.push(step < DAY_MS ? at : new Date(at + DAY_MS / 2).setHours(0, 0, 0, 0));
  return ticks;
}

/** From one moment to another: milliseconds of the epoch. */
/** @typedef {{ readonly fromMs: number, readonly untilMs: number }} Span */
