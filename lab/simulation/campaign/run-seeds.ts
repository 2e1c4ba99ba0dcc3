import { readCircumstances, replaceBetween } from '../../support/results.ts';
import { planWorld } from '../world/plan-world.ts';
import { runPlan } from './run-block.ts';
import { readProgram, writeScripts } from './scripts.ts';
import { type SearchResult, type SeedRange, search } from './search.ts';
import { shrink } from './shrink.ts';

/** Seeds between two lines of progress. */
const REPORT_SEEDS = 10_000;

/** Runs seeds until one has a finding, and shrinks that world. Returns the exit code. */
export async function runSeeds(range: SeedRange): Promise<number> {
  await using scripts = await writeScripts(null);
  const { directory } = scripts;
  let reported = 0;
  const onProgress = (done: number) => {
    if (done - reported < REPORT_SEEDS) return;
    reported = done;
    console.error(`${done} seeds …`);
  };
  const result = await search(directory, range, { onProgress });
  console.log(toSummary(range.first, result));
  if (result.finding === null) {
    if (range.isWritten) writeFigures(range.first, result);
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

function writeFigures(first: number, result: SearchResult): void {
  const { date, commit } = readCircumstances();
  const text = `On ${date} at commit ${commit}, in one run:\n\n\`\`\`\n${toSummary(first, result)}\n\`\`\``;
  replaceBetween('docs/reliability.md', '<!-- simulated -->', '<!-- end of what was simulated -->', text);
}

/** One line about a search. */
function toSummary(first: number, result: SearchResult): string {
  const { seeds, steps, requests, records, simulatedMs, seconds, finding } = result;
  const hours = (simulatedMs / 3_600_000).toFixed(1);
  return (
    `${seeds} worlds from seed ${first}: ${steps} steps, ${requests} requests, ${records} records, ` +
    `${hours} simulated hours, ${finding === null ? 'no finding' : 'one finding'}, ${seconds.toFixed(1)} s`
  );
}
