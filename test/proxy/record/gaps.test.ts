import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GapRecorder, percentile } from '../../../src/proxy/response/stream-tap.ts';

function recorderOf(arrivalsMs: readonly number[]): GapRecorder {
  const recorder = new GapRecorder();
  for (const arrivalMs of arrivalsMs) recorder.add(arrivalMs);
  return recorder;
}

describe('a percentile', () => {
  it.each([
    [[7], 0.95, 7],
    [[1, 2], 0.5, 1.5],
    [[1, 2, 3], 0.5, 2],
    [[0, 10], 0.95, 9.5],
    [[1, 2, 3, 4, 100], 0.95, 80.8],
    [[1, 2, 3], 0, 1],
    [[1, 2, 3], 1, 3],
  ])('of %j at %s is %s', (sorted, p, expected) => {
    expect(percentile(Float64Array.from(sorted), p)).toBeCloseTo(expected, 12);
  });
});

describe('the gaps of a stream', () => {
  it.each([[[]], [[5]]])('are unknown after the arrivals %j', (arrivals) => {
    const recorder = recorderOf(arrivals);
    expect(recorder.percentiles()).toBeNull();
  });

  it('are those between successive chunks, zeros included', () => {
    const recorder = recorderOf([100, 110, 110, 110, 150]);
    expect(recorder.percentiles()?.p50).toBe(5);
    expect(recorder.percentiles()?.p95).toBeCloseTo(35.5, 12);
  });

  it('are still counted after a percentile was computed', () => {
    const recorder = recorderOf([0, 10, 11]);
    expect(recorder.percentiles()?.p50).toBe(5.5);
    recorder.add(14);
    expect(recorder.percentiles()?.p50).toBe(3);
  });

  it('are all counted, however many', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 500 }), (gapsMs) => {
        let nowMs = 0;
        const recorder = recorderOf([0, ...gapsMs.map((gapMs) => (nowMs += gapMs))]);
        const sorted = Float64Array.from(gapsMs).sort();
        expect(recorder.percentiles()?.p50).toBe(percentile(sorted, 0.5));
        expect(recorder.percentiles()?.p95).toBe(percentile(sorted, 0.95));
      }),
    );
  });

  it('take bounded memory for an endless stream', () => {
    const recorder = new GapRecorder();
    for (let arrivalMs = 0; arrivalMs < 262_145; arrivalMs++) recorder.add(arrivalMs);
    for (let arrivalMs = 1e6; arrivalMs < 1e9; arrivalMs += 1e3) recorder.add(arrivalMs);
    expect(recorder.percentiles()).toEqual({ p50: 1, p95: 1 });
  });
});
