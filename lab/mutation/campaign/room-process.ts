import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, createVitest, type TestSpecification } from 'vitest/node';
import { ROOT } from '#testkit/programs/results.ts';
import { instrument } from '../mutants/instrument.ts';
import { mutantsOf } from '../mutants/room-mutants.ts';
import { MUTATED_ROOMS } from '../rooms.ts';
import { PLAN_VARIABLE, type Plan, type Report, type WholeRun } from './plan.ts';

/*
 * Runs test files of a room, with its mutants compiled into the sources: `node room-process.ts ROOM FILE...`. The
 * worker reads its plan from the file that the environment names.
 */

/** What tests clean up may hang in a mutant. */
const HOOK_TIMEOUT_MS = 10_000;

const [name, ...files] = process.argv.slice(2);
const room = MUTATED_ROOMS.find((each) => each.name === name);
if (room === undefined) throw new Error(`there is no room ${name}`);

const byFile = mutantsOf(room);
const planPath = process.env[PLAN_VARIABLE] ?? '';
const plan: Plan = JSON.parse(readFileSync(planPath, 'utf8'));

/** Keeps the order of the command line. */
class InOrder extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => files.indexOf(relative(ROOT, moduleId));
    return specifications.toSorted((a, b) => place(a) - place(b));
  }
}

const vitest = await createVitest(
  'test',
  {
    config: false,
    root: ROOT,
    watch: false,
    include: files.length === 0 ? [] : [...files],
    runner: join(import.meta.dirname, 'mutation-runner.ts'),
    reporters: [{}],
    // What is cached has no mutants, or those of another run.
    fsModuleCache: false,
    // A mutant that is on from the start needs modules that load with it.
    isolate: plan.wholeRuns !== null,
    fileParallelism: false,
    maxWorkers: 1,
    bail: plan.wholeRuns === null ? 0 : 1,
    testTimeout: 60_000,
    hookTimeout: HOOK_TIMEOUT_MS,
    teardownTimeout: 1_000,
    expect: { poll: { timeout: 30_000 } },
    sequence: { sequencer: InOrder },
    silent: true,
  },
  {
    plugins: [
      {
        name: 'spangate-mutants',
        enforce: 'pre',
        transform(_code, id) {
          const mutated = byFile.get(relative(ROOT, id));
          if (mutated === undefined) return null;
          const { mutants, firstId } = mutated;
          return { code: instrument(readFileSync(id, 'utf8'), mutants, firstId), map: null };
        },
      },
    ],
  },
);
if (plan.wholeRuns === null) {
  const { testModules, unhandledErrors } = await vitest.start();
  for (const error of unhandledErrors) console.error(error);
  for (const module of testModules)
    for (const error of module.errors()) console.error(error.message, error.stack);
} else {
  await vitest.standalone();
  for (const wholeRun of plan.wholeRuns) await runWhole(wholeRun);
}
await vitest.close();
process.exit(0);

/** Workers read the plan when they start: each run begins with one of its own. */
async function runWhole({ id, tests }: WholeRun): Promise<void> {
  writeFileSync(planPath, JSON.stringify({ ...plan, wholeRun: id }));
  const startMs = performance.now();
  // On a busy machine, any run may fail once: with a mutant that would be a kill, without one the end of its tests.
  const hasPassed = (await passes(tests)) || (await passes(tests));
  const report: Report = { kind: 'whole run', id, ms: performance.now() - startMs, hasPassed };
  appendFileSync(plan.log, `${JSON.stringify(report)}\n`);
}

async function passes(tests: readonly string[]): Promise<boolean> {
  const specifications = await vitest.globTestSpecifications([...tests]);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  // Vitest returns the modules of earlier runs, too.
  const own = testModules.filter(({ moduleId }) => tests.includes(relative(ROOT, moduleId)));
  return unhandledErrors.length === 0 && own.every((module) => module.ok());
}
