import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PLANTED_FAULTS } from '../../simulation/campaign/planted-faults.ts';
import { runPlan } from '../../simulation/campaign/run-block.ts';
import { type BundledScripts, readProgram, writeScripts } from '../../simulation/campaign/scripts.ts';
import { shrink, withActions } from '../../simulation/campaign/shrink.ts';
import type { Program } from '../../simulation/program/program.ts';
import type { Plan } from '../../simulation/world/plan.ts';
import { planWorld } from '../../simulation/world/plan-world.ts';

/** The first seeds whose worlds have these shapes. */
const SHAPES: readonly (readonly [shape: string, has: (plan: Plan) => boolean])[] = [
  ['one gateway with one worker', ({ gateways, workers }) => gateways === 1 && workers === 1],
  ['one gateway with several workers', ({ gateways, workers }) => gateways === 1 && workers > 1],
  ['a fleet with several workers', ({ gateways, workers }) => gateways > 1 && workers > 1],
  [
    'a worker that dies between two steps, with a ledger',
    ({ hasLedger, actions }) => hasLedger && actions.some(({ kind }) => kind === 'kill_worker'),
  ],
  ['records in files', ({ exportTo }) => exportTo === 'file'],
  [
    'one gateway that is killed',
    ({ gateways, actions }) => gateways === 1 && actions.some(({ kind }) => kind === 'kill'),
  ],
];

describe('a simulated world', () => {
  let scripts: BundledScripts;
  let program: Program;

  beforeAll(async () => {
    scripts = await writeScripts(null);
    program = await readProgram(scripts.directory);
  });

  afterAll(() => scripts[Symbol.asyncDispose]());

  test.each(SHAPES)('takes the same steps each time: %s', async (_shape, has) => {
    const plan = firstPlan(has);
    const first = await runPlan(plan, program, null);
    // Another world in between must leave nothing behind.
    await runPlan(planWorld(plan.seed + 1), program, null);
    const second = await runPlan(plan, await readProgram(scripts.directory), null);
    expect(first.violation).toBeNull();
    expect(first.steps).toBeGreaterThan(100);
    expect(second).toEqual(first);
  });

  test('another seed takes other steps', async () => {
    const one = await runPlan(planWorld(1), program, null);
    const other = await runPlan(planWorld(2), program, null);
    expect(one.hash).not.toBe(other.hash);
  });
});

test('a planted fault is found, and its world shrinks to what it needs', async () => {
  const fault = PLANTED_FAULTS.find(({ name }) => name.startsWith('chunks'));
  await using scripts = await writeScripts(fault?.patch ?? null);
  const program = await readProgram(scripts.directory);
  for (let seed = 1; seed < 200; seed++) {
    const plan = planWorld(seed);
    const { violation } = await runPlan(plan, program, null);
    if (violation === null) continue;
    const { keep, violation: last } = await shrink(plan, violation, program);
    expect(keep.length).toBeLessThan(plan.actions.length);
    const again = await runPlan(withActions(plan, keep), program, null);
    expect(again.violation).toEqual(last);
    return;
  }
  expect.unreachable('no seed finds it');
});

test.each(PLANTED_FAULTS)('the sources still have the place of a planted fault: $name', async ({ patch }) => {
  const code = await readFile(join(import.meta.dirname, '../../..', patch.file), 'utf8');
  expect(code.split(patch.from)).toHaveLength(2);
});

function firstPlan(has: (plan: Plan) => boolean): Plan {
  for (let seed = 1; ; seed++) {
    const plan = planWorld(seed);
    if (has(plan)) return plan;
  }
}
