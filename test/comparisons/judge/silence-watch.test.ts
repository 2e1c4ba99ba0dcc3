import { expect, test } from 'vitest';
import { SilenceWatch } from '../../../src/comparisons/judge/silence-watch.ts';

interface Case {
  readonly perSecond: number;
  readonly e2eMs: number;
  readonly share?: number;
  /** When a request of the replica ends. */
  readonly endsAt?: number;
}

/** Watches a replica while its peers, three of them, end so many requests each second. */
function watch(seconds: number, { perSecond, e2eMs, share = 1, endsAt = -1 }: Case): SilenceWatch {
  const silence = new SilenceWatch(0);
  for (let second = 1; second <= seconds; second++) {
    if (second === endsAt) silence.heard(second * 1_000);
    for (let count = 0; count < perSecond; count++) {
      silence.peerEnded({ beganMs: second * 1_000 - e2eMs, peerCount: 3, share });
    }
  }
  return silence;
}

test('a replica is silent when its peers have ended what it has not', () => {
  const busy = { perSecond: 150, e2eMs: 200 };
  expect(watch(9, busy).isSilent(40, 9_000)).toBe(false);
  expect(watch(10, busy).isSilent(40, 10_000)).toBe(true);
});

test('it is not if it has nothing in flight, little to do, few turns, or has just ended a request', () => {
  const busy = { perSecond: 150, e2eMs: 200 };
  expect(watch(60, busy).isSilent(0, 60_000)).toBe(false);
  expect(watch(60, { ...busy, perSecond: 0 }).isSilent(40, 60_000)).toBe(false);
  expect(watch(10, { ...busy, perSecond: 60, share: 0.05 }).isSilent(1, 10_000)).toBe(false);
  expect(watch(12, { ...busy, endsAt: 11 }).isSilent(40, 12_000)).toBe(false);
});

test('requests that its peers began before it served do not count: it could not have ended one of them', () => {
  const slow = { perSecond: 150, e2eMs: 31_000 };
  expect(watch(30, slow).isSilent(40, 30_000)).toBe(false);
  expect(watch(40, slow).isSilent(40, 40_000)).toBe(true);
});
