import { expect, test } from 'vitest';
import type { Observation } from '../../src/verdict/observation.ts';
import { continueSilence, isSilent, type Silence } from '../../src/verdict/silence.ts';

const ended = (e2eMs: number, count: number): readonly Observation[] =>
  Array.from({ length: count }, () => ({
    ...{
      replica: 'peer',
      model: 'm',
      endpoint: '/v1/completions',
      stream: false,
      promptTokens: 1,
      cachedTokens: 0,
    },
    ...{
      completionTokens: 1,
      maxTokens: null,
      ttftMs: null,
      gapMs: null,
      e2eMs,
      outcome: 'ok',
      finish: 'stop',
    },
  }));

/** Looks once a second while the peers, three of them, end so many requests between two looks. */
function watch(
  seconds: number,
  {
    perLook,
    e2eMs,
    share = 1,
    endsAt = -1,
  }: { perLook: number; e2eMs: number; share?: number; endsAt?: number },
): Silence {
  let silence: Silence = { sinceMs: 0, expected: 0 };
  for (let second = 1; second <= seconds; second++) {
    silence = continueSilence(silence, {
      ...{
        nowMs: second * 1_000,
        ended: second === endsAt,
        peers: ended(e2eMs, perLook),
        peerCount: 3,
        share,
      },
    });
  }
  return silence;
}

test('a replica is silent when its peers have ended what it has not', () => {
  expect(isSilent(watch(9, { perLook: 150, e2eMs: 200 }), 40, 9_000)).toBe(false);
  expect(isSilent(watch(10, { perLook: 150, e2eMs: 200 }), 40, 10_000)).toBe(true);
});

test('it is not if it has nothing in flight, little to do, few turns, or has just ended a request', () => {
  expect(isSilent(watch(60, { perLook: 150, e2eMs: 200 }), 0, 60_000)).toBe(false);
  expect(isSilent(watch(60, { perLook: 0, e2eMs: 200 }), 40, 60_000)).toBe(false);
  expect(isSilent(watch(10, { perLook: 60, e2eMs: 200, share: 0.05 }), 1, 10_000)).toBe(false);
  expect(isSilent(watch(12, { perLook: 150, e2eMs: 200, endsAt: 11 }), 40, 12_000)).toBe(false);
});

test('requests that its peers began before it served do not count: it could not have ended one of them', () => {
  expect(isSilent(watch(30, { perLook: 150, e2eMs: 31_000 }), 40, 30_000)).toBe(false);
  expect(isSilent(watch(40, { perLook: 150, e2eMs: 31_000 }), 40, 40_000)).toBe(true);
});
