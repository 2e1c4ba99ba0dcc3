import { expect, test } from 'vitest';
import { allocateSharedState, CURSORS, SharedState } from '#replicas/shared';
import { SILENT_AFTER } from '#replicas/silence';
import { StreamSilenceLearner } from '../../../src/replicas/health/stream-silence-learner.ts';

const [M, OTHER] = [5, 6];
const HOUR_MS = 3_600_000;

function createTimes() {
  let nowMs = 1_000;
  const { silenceLimits: limits } = new SharedState(allocateSharedState(1));
  const times = new StreamSilenceLearner(limits, () => nowMs);
  times.take(new Map([...Object.entries({ m: M, other: OTHER })]));
  return {
    times,
    limits,
    pass: (ms: number) => (nowMs += ms),
    /** So many streams end with these times. */
    end(count: number, firstTokenMs: number | null, gapMs: number | null, model = 'm', promptChars = 100) {
      for (let each = 0; each < count; each++) times.add({ model, promptChars, firstTokenMs, gapMs });
    },
    firstByteMs: (promptChars: number | null, kind = M) =>
      limits.firstByteMsOf(kind, limits.sizeClassOf(promptChars)),
  };
}

test('prompts are alike if one is at most four times as long as the other, from a thousand characters on', () => {
  const lengths = [null, 0, 1_024, 1_025, 4_096, 4_097, 16_384, 65_536, 262_144, 1_048_576, 1_048_577, 1e9];
  const { limits } = createTimes();
  expect(lengths.map((length) => limits.sizeClassOf(length))).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7]);
});

test('twenty streams of a model make its limits: multiples of what four of five need', () => {
  const { end, limits, firstByteMs } = createTimes();
  end(16, 2_000, 1_000);
  end(3, 60_000, 30_000);
  expect([firstByteMs(100), limits.gapMsOf(M)]).toEqual([SILENT_AFTER.firstByteMs, SILENT_AFTER.gapMs]);
  end(1, 60_000, 30_000);
  // The upper end of a step: the square root of two is the next.
  expect(firstByteMs(100)).toBe(10_240);
  expect(limits.gapMsOf(M)).toBe(20_480);
});

test('limits are at least five seconds', () => {
  const { end, limits, firstByteMs } = createTimes();
  end(20, 30, 0);
  expect([firstByteMs(100), limits.gapMsOf(M)]).toEqual([5_000, 5_000]);
});

test('the time to the first token is that of prompts of like length', () => {
  const { end, firstByteMs } = createTimes();
  end(20, 30, null);
  end(20, 5_000, null, 'm', 100_000);
  expect(firstByteMs(1_000)).toBe(5_000);
  expect(firstByteMs(100_000)).toBeGreaterThan(25_000);
  expect([firstByteMs(10_000), firstByteMs(null)]).toEqual([60_000, 60_000]);
});

test('models have their own limits; unknown ones share theirs', () => {
  const { end, limits, firstByteMs } = createTimes();
  end(10, 30, 10, 'x');
  end(10, 30, 10, '');
  expect(limits.gapMsOf(CURSORS.unknownModels)).toBe(5_000);
  expect(firstByteMs(100, CURSORS.unknownModels)).toBe(5_000);
  expect([limits.gapMsOf(M), limits.gapMsOf(OTHER)]).toEqual([30_000, 30_000]);
});

test('what was learned counts less with age, so that a slower engine makes another limit', () => {
  const { end, firstByteMs, pass } = createTimes();
  end(1_000, 30, null);
  pass(HOUR_MS);
  end(4, 8_000, null);
  expect(firstByteMs(100)).toBe(60_000);
  end(16, 8_000, null);
  expect(firstByteMs(100)).toBeGreaterThan(40_000);
});

test('a model that no stream has used for an hour is forgotten', () => {
  const { end, limits, pass } = createTimes();
  end(20, 30, 10);
  pass(HOUR_MS);
  end(1, 30, 10, 'other');
  expect(limits.gapMsOf(M)).toBe(5_000);
  pass(1);
  end(1, 30, 10, 'other');
  expect(limits.gapMsOf(M)).toBe(30_000);
});

test('a model that is served no more is forgotten, so that the next one with its number begins anew', () => {
  const { end, limits, times } = createTimes();
  end(20, 30, 10);
  end(20, 30, 10, 'other');
  times.take(new Map([...Object.entries({ next: M, other: OTHER })]));
  expect([limits.gapMsOf(M), limits.gapMsOf(OTHER)]).toEqual([30_000, 5_000]);
  end(19, 30, 10, 'next');
  expect(limits.gapMsOf(M)).toBe(30_000);
});

test('a thousand models are kept: those of which streams ended last', () => {
  const { times, limits } = createTimes();
  times.take(new Map(Array.from({ length: 1_001 }, (_, index) => [`m${index}`, 100 + index] as const)));
  const endAll = (index: number) => {
    for (let count = 0; count < 20; count++)
      times.add({ model: `m${index}`, promptChars: 1, firstTokenMs: 1, gapMs: 1 });
  };
  for (let index = 0; index < 1_000; index++) endAll(index);
  endAll(0);
  expect(limits.gapMsOf(101)).toBe(5_000);
  endAll(1_000);
  expect([limits.gapMsOf(100), limits.gapMsOf(101)]).toEqual([5_000, 30_000]);
});
