import { describe, expect, test } from 'vitest';
import { toSpentUs } from '#testkit/programs/process-tree.ts';
import { toSpread } from '#testkit/programs/statistics.ts';
import type { Sample } from '../bench/case.ts';
import { CASES } from '../bench/cases.ts';
import { toOptions } from '../bench/options.ts';
import { toTable } from '../bench/report.ts';
import { TARGETS } from '../bench/targets/all.ts';

describe('the benchmarks', () => {
  test('the median ignores failed measurements', () => {
    expect(toSpread([5, Number.NaN, 1, 2])).toEqual({ median: 2, min: 1, max: 5 });
    expect(toSpread([4, 1]).median).toBe(2.5);
  });

  test('a ratio compares measurements of the same round', () => {
    const samples = (values: readonly number[]): readonly Sample[] => values.map((cpuUs) => ({ cpuUs }));
    const benchCase = {
      name: 'case',
      title: 'title',
      reference: 'pipe',
      figures: [{ key: 'cpuUs', title: 'CPU, µs', digits: 0 }],
      measure: async () => ({}),
    };
    const rows = [
      { target: 'pipe', samples: samples([10, 20, 30]), failure: null },
      { target: 'gateway', samples: samples([20, 60, 60]), failure: null },
      { target: 'broken', samples: [], failure: 'it ended' },
    ];
    expect(toTable(benchCase, rows).split('\n').slice(2)).toEqual([
      '| pipe | 20 (10 to 30) |  |',
      '| gateway | 60 (20 to 60) | 2.00 (2.00 to 3.00) |',
      '| broken | it ended |  |',
    ]);
  });

  test('a thread that ended is missing from the fine reading, but not from the result', () => {
    const before = { coarseUs: 1_000_000, fineUs: 1_004_321, processCount: 1 };
    expect(toSpentUs(before, { coarseUs: 1_500_000, fineUs: 1_508_765, processCount: 1 })).toBe(504_444);
    expect(toSpentUs(before, { coarseUs: 1_500_000, fineUs: 700_000, processCount: 1 })).toBe(500_000);
    expect(toSpentUs(before, { coarseUs: 1_500_000, fineUs: Number.NaN, processCount: 1 })).toBe(500_000);
  });

  test('only the results of a whole run are written into the documents without --write', () => {
    const writes = (...[values]: Parameters<typeof toOptions>) => toOptions(values).writes;
    expect([
      writes({}),
      writes({ quick: true }),
      writes({ cases: 'plain' }),
      writes({ quick: true, write: true }),
    ]).toEqual([true, false, false, true]);
  });

  test('every case names targets that exist, and its reference among them', () => {
    const names = TARGETS.map(({ name }) => name);
    for (const { reference, targets = names } of CASES) {
      expect(names).toEqual(expect.arrayContaining([...targets]));
      expect(targets).toContain(reference);
    }
  });
});
