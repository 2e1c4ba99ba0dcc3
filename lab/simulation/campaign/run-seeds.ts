import { readCircumstances } from '#testkit/programs/results.ts';
import { planWorld } from '../world/plan-world.ts';
import { appendResult, toSummary, writeFigures } from './results-file.ts';
import { runPlan } from './run-block.ts';
import { readProgram, writeScripts } from './scripts.ts';
import { type SeedRange, search } from './search.ts';
import { shrink } from './shrink.ts';

/** Seeds between two lines of progress. */
const REPORT_SEEDS = 10_000;

/**
 * Runs seeds until one has a finding, and shrinks that world. What was done is appended to the file `results`, if it has a
 * name. Returns the exit code.
 */
export async function runSeeds(range: SeedRange, results: string): Promise<number> {
  await using scripts = await writeScripts(null);
  const { directory } = scripts;
  const { commit } = readCircumstances();
  let done = 0;
  let reported = 0;
  const result = await search(directory, range, {
    onBlock: (block) => {
      if (results !== '') appendResult(results, commit, block);
      done += block.seeds;
      if (done - reported < REPORT_SEEDS) return;
      reported = done;
      console.error(`${done} seeds …`);
    },
  });
  const findings = result.finding === null ? [] : [result.finding.seed];
  const summary = toSummary(`from seed ${range.first}`, { ...result, findings });
  console.log(`${summary}, ${result.seconds.toFixed(1)} s`);
  if (result.finding === null) {
    if (range.isWritten) writeFigures(`at commit ${commit}`, [summary]);
    return 0;
  }
  const { seed, text } = result.finding;
  console.log(`seed ${seed}: ${text}`);
  const program = await readProgram(directory);
  const plan = planWorld(seed);
  const { violation } = await runPlan(plan, program, null);
  if (violation === null) {
    console.log('not found again: the simulation is not deterministic');
    return 1;
  }
  const { keep, violation: last, runs } = await shrink(plan, violation, program);
  console.log(`shrunk from ${plan.actions.length} to ${keep.length} actions in ${runs} runs: ${last.text}`);
  console.log(
    `npm run simulate -- --seed ${seed} --keep ${keep.length === 0 ? 'none' : keep.join(',')} --trace`,
  );
  return 1;
}
