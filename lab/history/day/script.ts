import { toRandom } from '#testkit/random.ts';
import type { HistorySettings, Prices } from './messages.ts';
import { type DayRequest, REPLICAS } from './traffic.ts';

/*
 * What happens in the day beside its requests. All times are milliseconds since it began.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MIB = 1024 ** 2;

/** An hour before midnight in Berlin, in the night in which its clocks are set back: that day has 25 hours. */
export const START_MS = Date.parse('2026-10-24T21:00:00Z');
/** It ends an hour after the next midnight there. */
export const DAY_MS = 27 * HOUR_MS;

/** Long requests come while nothing can be written: more than may wait. */
export const BURST = { fromMs: 10 * HOUR_MS, untilMs: 10 * HOUR_MS + 25 * MINUTE_MS, perSecond: 9 };

/** When the history is off. */
export const OFF = { fromMs: 15.5 * HOUR_MS, untilMs: 15.7 * HOUR_MS };

/** Before a run ends in order, no request comes for so long: each that has come ends. */
export const DRAIN_MS = 2 * MINUTE_MS;

/** The least limit of the configuration, and a longer one. */
const SMALL = 40 * MIB;

/** The settings of the history until they are reloaded. */
export const SETTINGS: HistorySettings = { maxSizeBytes: SMALL, maxAgeMs: 35 * 24 * HOUR_MS };

/** What an hour of a GPU costs at first. */
export const PRICES: Prices = REPLICAS.map(({ gpuHourPrice }) => gpuHourPrice);

/** From an opening of the history to its end. */
export interface Run {
  readonly openMs: number;
  readonly untilMs: number;
  readonly end: 'killed' | 'closed';
  /** So many starts before it are killed while they open the history. */
  readonly killedStarts: number;
  readonly currency: string;
}

/** Something that is done at a moment. */
export type Act = { readonly atMs: number } & (
  | { readonly kind: 'disk'; readonly isFull: boolean }
  /** Everything is written, and looked at. */
  | { readonly kind: 'settle' }
  | { readonly kind: 'prices'; readonly prices: Prices }
  | { readonly kind: 'reload'; readonly settings: HistorySettings | null }
  | { readonly kind: 'clock'; readonly startMs: number }
);

const at = (hours: number) => hours * HOUR_MS;

/** What is done, in its order. The writer is killed while the disk is full at 7:00, and with another clock at 14:00. */
export const ACTS: readonly Act[] = [
  { kind: 'disk', isFull: true, atMs: at(3.1) },
  { kind: 'disk', isFull: false, atMs: at(3.2) },
  { kind: 'settle', atMs: at(3.2) },
  { kind: 'disk', isFull: true, atMs: at(7) - 3 * MINUTE_MS },
  { kind: 'prices', prices: PRICES.map((price) => price && price * 2), atMs: at(9) },
  { kind: 'disk', isFull: true, atMs: BURST.fromMs - MINUTE_MS },
  { kind: 'disk', isFull: false, atMs: BURST.untilMs + 2 * MINUTE_MS },
  { kind: 'settle', atMs: BURST.untilMs + 2 * MINUTE_MS },
  { kind: 'reload', settings: { maxSizeBytes: SMALL, maxAgeMs: 4 * HOUR_MS }, atMs: at(12) },
  // An hour is lived twice, and left out later.
  { kind: 'clock', startMs: START_MS - HOUR_MS, atMs: at(14) },
  { kind: 'reload', settings: null, atMs: OFF.fromMs },
  { kind: 'reload', settings: SETTINGS, atMs: OFF.untilMs },
  { kind: 'clock', startMs: START_MS, atMs: at(16.2) },
  { kind: 'prices', prices: PRICES.map((price) => price && price * 0.7), atMs: at(20) },
  { kind: 'disk', isFull: true, atMs: at(22) },
  { kind: 'disk', isFull: false, atMs: at(22.05) },
  { kind: 'settle', atMs: at(22.05) },
];

/** When a run ends for certain; the currency is another one after 18:00. */
const FIXED = [
  { untilMs: at(7), end: 'killed', currency: 'EUR' },
  { untilMs: at(14), end: 'killed', currency: 'EUR' },
  { untilMs: at(18), end: 'closed', currency: 'EUR' },
  { untilMs: DAY_MS, end: 'closed', currency: 'USD' },
] as const;

/** No run ends then: what is done needs it. */
const BUSY: readonly (readonly [fromMs: number, untilMs: number])[] = [
  [at(3), at(3.4)],
  [at(6.8), at(7)],
  [BURST.fromMs - 10 * MINUTE_MS, BURST.untilMs + 10 * MINUTE_MS],
  [OFF.fromMs - 6 * MINUTE_MS, OFF.untilMs + 6 * MINUTE_MS],
  [at(21.9), at(22.2)],
  ...ACTS.map(({ atMs }) => [atMs - 2 * MINUTE_MS, atMs + MINUTE_MS] as const),
];

/** The first moment from this one on at which a run may end. */
function afterBusy(ms: number): number {
  const busy = BUSY.find(([from, until]) => ms > from && ms < until);
  return busy === undefined ? ms : afterBusy(busy[1]);
}

/** Plans the runs of the day. A kill comes when a request has just ended, and its record is to be written. */
export function planRuns(
  seed: number,
  killsPerHour: number,
  requests: readonly DayRequest[],
): readonly Run[] {
  const random = toRandom(seed);
  const runs: Run[] = [];
  let openMs = 0;
  for (const fixed of FIXED) {
    for (;;) {
      const wishedMs = Math.round(openMs + 5 * MINUTE_MS + (random() * 2 * HOUR_MS) / killsPerHour);
      const isWhole = ({ arriveMs, endMs }: DayRequest) => arriveMs >= openMs && endMs >= wishedMs;
      const untilMs = afterBusy((requests.find(isWhole)?.endMs ?? wishedMs) + 1);
      const isLast = untilMs >= fixed.untilMs - 10 * MINUTE_MS;
      const end = random() < 0.8 ? 'killed' : 'closed';
      const killedStarts = random() < 0.25 ? 1 + Math.floor(random() * 2) : 0;
      const { currency } = fixed;
      runs.push({ openMs, killedStarts, currency, ...(isLast ? fixed : { untilMs, end }) });
      openMs = (isLast ? fixed.untilMs : untilMs) + Math.round(1_500 + random() * 30_000);
      if (isLast) break;
    }
  }
  return runs;
}
