import { existsSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ROOT } from '#testkit/programs/results.ts';
import type { Outcome } from '../mutation/campaign/run-room.ts';
import { EQUIVALENT_MUTANTS } from '../mutation/equivalent.ts';
import { judge } from '../mutation/judge.ts';
import { findMutants } from '../mutation/mutants/find-mutants.ts';
import { instrument, SWITCH_NAME } from '../mutation/mutants/instrument.ts';
import { mutantsOf } from '../mutation/mutants/room-mutants.ts';
import { MUTATED_ROOMS } from '../mutation/rooms.ts';

const SOURCE = `
function sum(values: readonly (number | null)[], limit: number): string {
  let total = 0;
  for (const value of values) {
    if (value === null || (value < 0 && limit > 2)) continue;
    if (total > limit) break; else total += value;
  }
  const shown = values.length > 1 ? \`\${total}\` : values[0]?.toFixed(1) ?? 'none';
  while (total >= 10) total -= 10;
  return shown.padEnd(-total * 2);
}`;
const INPUTS = [[[], 1] as const, [[3], 1] as const, [[1, null, -2, 4], 3] as const, [[8, 9], 20] as const];

/** What the function of a source returns for each input; the text of an error if it throws. */
function answersOf(source: string, on: (id: number) => boolean): readonly unknown[] {
  let turns = 0;
  const tick = () => {
    if (turns++ > 1_000) throw new Error('endless');
  };
  const sum = runInNewContext(`${stripTypeScriptTypes(source)}; sum`, { [SWITCH_NAME]: { on, tick } });
  return INPUTS.map(([values, limit]) => {
    try {
      turns = 0;
      return sum(values, limit);
    } catch (error) {
      return String(error);
    }
  });
}

describe('mutants', () => {
  const mutants = findMutants('sum.ts', SOURCE);

  test('are conditions, boundaries, operands, numbers and missing statements, each with its function', () => {
    expect(new Set(mutants.map(({ where }) => where))).toEqual(new Set(['sum']));
    const changes = mutants.map(({ original, mutated }) => `${original} → ${mutated}`);
    for (const change of [
      'value < 0 → value <= 0',
      'value === null || (value < 0 && limit > 2) → value === null',
      'total > limit → true',
      'total -= 10; → ',
      'continue; → ',
      '-total → total',
      "'none' → ''",
      '0 → 1',
    ]) {
      expect(changes).toContain(change);
    }
  });

  test('switched on one at a time do what the changed source does, and switched off nothing', () => {
    const compiled = instrument(SOURCE, mutants, 1);
    expect(answersOf(compiled, () => false)).toEqual(answersOf(SOURCE, () => false));
    for (const [index, { start, end, mutated, original }] of mutants.entries()) {
      const changed = `${SOURCE.slice(0, start)}${mutated || ';'}${SOURCE.slice(end)}`;
      const guarded = instrument(changed, [], 1);
      const answers = answersOf(compiled, (id) => id === index + 1);
      expect([original, mutated, answers]).toEqual([original, mutated, answersOf(guarded, () => false)]);
    }
  });
});

describe('the score', () => {
  const [first, second, third] = findMutants('sum.ts', SOURCE);
  const outcomes = [first, second, third].flatMap((mutant, index): Outcome[] => {
    const killed = index === 0 ? ({ how: 'failure', test: 'a test' } as const) : null;
    return mutant === undefined
      ? []
      : [{ mutant, fate: killed ? 'killed' : 'survived', killed, survivedRuns: 1 }];
  });
  const listed = (mutant = first) => [
    {
      file: 'sum.ts',
      where: 'sum',
      why: '',
      changes: [[mutant?.original ?? '', mutant?.mutated ?? ''] as const],
    },
  ];

  test('is the part of the mutants that are not equivalent that was killed', () => {
    expect(judge(outcomes, [])).toMatchObject({ killedCount: 1, percent: 100 / 3, wrongEntries: [] });
    const judgement = judge(outcomes, listed(second));
    expect(judgement).toMatchObject({ equivalentCount: 1, percent: 50, wrongEntries: [] });
    expect(judgement.left).toHaveLength(1);
  });

  test('an entry about a mutant that was killed, or that does not exist, is wrong', () => {
    expect(judge(outcomes, listed(first)).wrongEntries).toHaveLength(1);
    const unknown = { file: 'sum.ts', where: 'sum', why: '', changes: [['a', 'b'] as const] };
    expect(judge(outcomes, [unknown]).wrongEntries).toEqual(['sum.ts sum: a → b: there is no such mutant']);
  });
});

test('each file that is mutated or tests mutants, and each mutant that is listed as equivalent, is there', () => {
  const paths = MUTATED_ROOMS.flatMap(({ sources, tests }) => [...sources, ...tests]);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const untried = MUTATED_ROOMS.flatMap((room) => [...mutantsOf(room).values()])
    .flatMap(({ mutants }) => mutants)
    .map((mutant): Outcome => ({ mutant, fate: 'untried', killed: null, survivedRuns: 0 }));
  expect(judge(untried, EQUIVALENT_MUTANTS).wrongEntries).toEqual([]);
  const files = new Set(untried.map(({ mutant }) => mutant.file));
  expect(EQUIVALENT_MUTANTS.filter(({ file }) => !files.has(file))).toEqual([]);
});
