import { median, percentile } from '../support/statistics.ts';

/** What was measured at one moment. */
export interface Sample {
  /** Seconds since the load began. */
  readonly atS: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly externalMb: number;
  /** Open file descriptors. */
  readonly fds: number;
}

/** A figure over the run. */
export interface Trend {
  /** In the second quarter, and in the last one. */
  readonly early: number;
  readonly late: number;
  /** By least squares over the lower envelope, after the first quarter. */
  readonly perHour: number;
}

/** Parts of the run whose lowest value counts: a heap goes up and down between collections. */
const WINDOWS = 16;

/** The trend of a figure. The first quarter, in which code is compiled and pools fill, does not count. */
export function toTrend(samples: readonly Sample[], key: Exclude<keyof Sample, 'atS'>): Trend {
  const size = Math.max(1, Math.floor(samples.length / WINDOWS));
  const lows: { readonly hour: number; readonly value: number }[] = [];
  for (let at = 0; at + size <= samples.length; at += size) {
    const window = samples.slice(at, at + size);
    lows.push({
      hour: (window[0]?.atS ?? 0) / 3600,
      value: Math.min(...window.map((sample) => sample[key])),
    });
  }
  const quarter = Math.floor(lows.length / 4);
  const valuesOf = (part: typeof lows) => part.map(({ value }) => value);
  return {
    early: median(valuesOf(lows.slice(quarter, 2 * quarter))),
    late: median(valuesOf(lows.slice(3 * quarter))),
    perHour: slopeOf(lows.slice(quarter)),
  };
}

function slopeOf(points: readonly { readonly hour: number; readonly value: number }[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const hour = mean(points.map((point) => point.hour));
  const value = mean(points.map((point) => point.value));
  const above = points.reduce((sum, point) => sum + (point.hour - hour) * (point.value - value), 0);
  const below = points.reduce((sum, point) => sum + (point.hour - hour) ** 2, 0);
  return below === 0 ? 0 : above / below;
}

/** The p99 of each part of the run, in milliseconds. */
export function toP99s(windows: readonly (readonly number[])[]): readonly number[] {
  return windows.filter(({ length }) => length > 0).map((latenciesMs) => percentile(latenciesMs, 0.99));
}
