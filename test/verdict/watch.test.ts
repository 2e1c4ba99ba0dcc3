import { describe, expect, test } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { runWatch, UNTIL_FOUND } from '#testkit/verdict/run-watch.ts';
import { EQUAL_REPLICAS, PLAIN, type Scenario } from '#testkit/verdict/workload.ts';

// `npm run lab -- measure/watch` is the long form, over days.
const SEEDS = [1, 2, 3, 4, 5];

/** When the replica is found, by seed; null: it is not. */
const findAll = (scenario: Scenario, settings = UNTIL_FOUND) =>
  SEEDS.map((seed) => runWatch(scenario, toRandom(seed), settings)[0] ?? null);

test.each(EQUAL_REPLICAS)(
  'no equal replica is found, even by a bound of one alarm per hour: %s',
  (_title, scenario) => {
    const alarms = runWatch({ ...scenario, requestsPerSecond: 20 }, toRandom(1), {
      ...UNTIL_FOUND,
      replicas: ['r0', 'r1', 'r2', 'r3'],
      seconds: 900,
      endsWithAlarm: false,
      falseAlarmsPerDay: 24,
    });
    expect(alarms).toEqual([]);
  },
);

describe('a replica is found that', () => {
  test('is 20 % slower, and named slow', () => {
    for (const alarm of findAll({ ...PLAIN, slowness: 1.2 })) {
      expect(alarm?.seconds).toBeLessThanOrEqual(90);
      expect(alarm?.wrong).not.toContain('errors');
    }
  });

  test('fails 5 % of its requests, in less time', () => {
    for (const alarm of findAll({ ...PLAIN, errorShare: 0.05 })) {
      expect(alarm?.seconds).toBeLessThanOrEqual(40);
      expect(alarm?.wrong).toEqual(['errors']);
    }
  });

  test('was found before, in half the time', () => {
    const scenario = { ...PLAIN, slowness: 1.2 };
    const first = findAll(scenario);
    const again = findAll(scenario, { ...UNTIL_FOUND, isProbation: true });
    for (const [index, alarm] of again.entries())
      expect(alarm?.seconds).toBeLessThanOrEqual((first[index]?.seconds ?? 0) / 2 + 2);
  });
});
