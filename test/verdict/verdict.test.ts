import { describe, expect, test } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { runs } from '#testkit/runs.ts';
import { runVerdict } from '#testkit/verdict/run-verdict.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '#testkit/verdict/workload.ts';

// `npm run lab -- measure/verdict` is the long form, over 21,000 rollouts.
const SETTINGS = { falseAlarm: 1 / 1_000, blockS: 2, maxSeconds: 120, ignoresGood: false };
const ROLLOUTS = runs(25);

const judgeAll = (scenario: Scenario, settings = SETTINGS) =>
  Array.from({ length: ROLLOUTS }, (_, seed) => runVerdict(scenario, toRandom(seed + 1), settings));

test.each(EQUAL_REPLICAS)('no equal replica is called bad: %s', (_title, scenario) => {
  expect(judgeAll(scenario).map(({ kind }) => kind)).not.toContain('bad');
});

test('no equal replica is called bad, however long one looks', () => {
  const ends = judgeAll(PLAIN, { ...SETTINGS, ignoresGood: true });
  expect(ends.map(({ kind }) => kind)).not.toContain('bad');
});

describe('a replica is found that', () => {
  test.each(EQUAL_REPLICAS)('is 20 %% slower: %s', (_title, scenario) => {
    const ends = judgeAll({ ...scenario, slowness: 1.2 });
    expect(new Set(ends.map(({ kind }) => kind))).toEqual(new Set(['bad']));
  });

  test('is 20 % slower to the first token', () => {
    const ends = judgeAll({ ...PLAIN, slowness: 1.2, isSlowToStart: true });
    expect(ends.filter(({ kind }) => kind === 'bad').length).toBeGreaterThanOrEqual(0.95 * ROLLOUTS);
    for (const { wrong } of ends) expect(wrong).not.toContain('gaps');
  });

  test('fails 5 % of its requests, in less time', () => {
    const ends = judgeAll({ ...PLAIN, errorShare: 0.05 });
    for (const { kind, wrong, requests } of ends) {
      expect([kind, wrong]).toEqual(['bad', ['errors']]);
      expect(requests).toBeLessThan(1_000);
    }
  });
});

test('a replica that is three times as slow is found with few requests', () => {
  for (const { kind, requests } of judgeAll({ ...PLAIN, slowness: 3, requestsPerSecond: 40 })) {
    expect(kind).toBe('bad');
    expect(requests).toBeLessThan(400);
  }
});
