import { median, percentile } from '#testkit/programs/statistics.ts';
import type { Sample } from './world/gateways.ts';

/** A figure over the run. */
export interface Trend {
  /** In the second quarter, and in the last one. */
  readonly early: number;
  readonly late: number;
  /** Growth per hour, with the ends of its interval of 95 %. */
  readonly perHour: Interval;
  /** The same over the part of the run that is judged. */
  readonly growth: Interval;
}

/** An estimate, and the ends of its interval of 95 %. */
export interface Interval {
  readonly low: number;
  readonly estimate: number;
  readonly high: number;
}

/** A value at a time, in hours. */
export interface Point {
  readonly hour: number;
  readonly value: number;
}

/** Parts of the run whose lowest value counts: a heap goes up and down between collections. */
const WINDOWS = 60;
/** For an interval of 95 %. */
const Z = 1.96;

/** The trend of a figure. */
export function toTrend(samples: readonly Sample[], key: Exclude<keyof Sample, 'atS'>): Trend {
  const size = Math.max(1, Math.floor(samples.length / WINDOWS));
  const lows: Point[] = [];
  for (let at = 0; at + size <= samples.length; at += size) {
    const window = samples.slice(at, at + size);
    const value = Math.min(...window.map((sample) => sample[key]));
    lows.push({ hour: (window[0]?.atS ?? 0) / 3600, value });
  }
  return toTrendOf(lows);
}

/** The trend of points in the order of time. The first quarter, in which code is compiled and pools fill, does not count. */
export function toTrendOf(points: readonly Point[]): Trend {
  const quarter = Math.floor(points.length / 4);
  const judged = points.slice(quarter);
  const valuesOf = (part: readonly Point[]) => part.map(({ value }) => value);
  const hours = (judged.at(-1)?.hour ?? 0) - (judged[0]?.hour ?? 0);
  const perHour = slopeOf(judged);
  return {
    early: median(valuesOf(judged.slice(0, Math.max(1, quarter)))),
    late: median(valuesOf(judged.slice(-Math.max(1, quarter)))),
    perHour,
    growth: { low: perHour.low * hours, estimate: perHour.estimate * hours, high: perHour.high * hours },
  };
}

/**
 * The median of the slopes of all pairs of points, which no outlier moves much, with an interval from Kendall's variance
 * (P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968). The interval takes the points as
 * independent. NaN of less than two points.
 */
export function slopeOf(points: readonly Point[]): Interval {
  const slopes = points
    .flatMap((from, at) => points.slice(at + 1).map((to) => (to.value - from.value) / (to.hour - from.hour)))
    .toSorted((a, b) => a - b);
  const count = points.length;
  const reach = Z * Math.sqrt((count * (count - 1) * (2 * count + 5)) / 18);
  const at = (rank: number) =>
    slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(rank)))] ?? Number.NaN;
  return {
    low: at((slopes.length - reach) / 2 - 1),
    estimate: median(slopes),
    high: at((slopes.length + reach) / 2),
  };
}

/** How long the same requests took through a gateway and directly, in a part of the run. */
export interface Window {
  readonly endS: number;
  readonly throughGateway: readonly number[];
  readonly direct: readonly number[];
}

/** The p99 of each part, in milliseconds, and their ratio. Parts with too few requests for a p99 are left out. */
export function toP99s(windows: readonly Window[]) {
  return windows
    .filter(({ throughGateway, direct }) => Math.min(throughGateway.length, direct.length) >= 100)
    .map(({ endS, throughGateway, direct }) => {
      const [gatewayMs, directMs] = [percentile(throughGateway, 0.99), percentile(direct, 0.99)];
      return { hour: endS / 3600, gatewayMs, directMs, ratio: gatewayMs / directMs };
    });
}
