import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DurationHistogram, toBucket } from '../../../../src/admin/dashboard/traffic/duration-histogram.ts';

const histogramOf = (durations: readonly number[]) => {
  const histogram = new DurationHistogram();
  for (const ms of durations) histogram.add(toBucket(ms));
  return histogram;
};

/** The smallest duration that has at least this share of all at or below it. */
const exactQuantile = (durations: readonly number[], share: number) =>
  durations.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * durations.length) - 1)] ?? Number.NaN;

const durations = fc.array(fc.double({ min: 1, max: 600_000, noNaN: true }), {
  minLength: 1,
  maxLength: 200,
});

test('a quantile is in the bucket of the exact one, so it is off by at most 8 %', () => {
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.95, 1), (all, share) => {
      const quantile = histogramOf(all).quantile(share) ?? Number.NaN;
      const exact = exactQuantile(all, share);
      expect(quantile).toBeGreaterThan(exact / 1.081);
      expect(quantile).toBeLessThan(exact * 1.081);
    }),
  );
});

test('a histogram without durations has no quantile', () => {
  expect(new DurationHistogram().quantile(0.5)).toBeNull();
});

test('merged histograms equal one that counted all durations', () => {
  fc.assert(
    fc.property(durations, durations, (some, others) => {
      const merged = histogramOf(some);
      merged.merge(histogramOf(others));
      const whole = histogramOf([...some, ...others]);
      for (const share of [0.01, 0.5, 0.95, 1]) expect(merged.quantile(share)).toBe(whole.quantile(share));
    }),
  );
});

test('durations outside the buckets count in the first or the last one', () => {
  expect(histogramOf([0]).quantile(1)).toBeCloseTo(0.5);
  expect(histogramOf([1e12]).quantile(1)).toBeGreaterThan(800_000);
});
