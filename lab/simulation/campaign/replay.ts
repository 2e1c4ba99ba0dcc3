import { planWorld } from '../world/plan-world.ts';
import { runPlan } from './run-block.ts';
import { readProgram, writeScripts } from './scripts.ts';
import { withActions } from './shrink.ts';

/** Runs one world again, step by step if it is to be seen. Returns the exit code. */
export async function replay(
  seed: number,
  keep: readonly number[] | null,
  isTraced: boolean,
): Promise<number> {
  await using scripts = await writeScripts(null);
  const plan = withActions(planWorld(seed), keep);
  const trace = (atMs: number, text: string) => console.log(`${atMs.toFixed(3).padStart(12)}  ${text}`);
  const { violation, ...facts } = await runPlan(
    plan,
    await readProgram(scripts.directory),
    isTraced ? trace : null,
  );
  const { actions, ...shape } = plan;
  console.log(`seed ${seed}: ${JSON.stringify(shape)}`);
  for (const [index, action] of actions.entries()) console.log(`  ${index}: ${JSON.stringify(action)}`);
  console.log(JSON.stringify(facts));
  console.log(
    violation === null
      ? 'nothing is wrong'
      : `step ${violation.step}, ${violation.atMs.toFixed(3)} ms: ${violation.text}`,
  );
  return violation === null ? 0 : 1;
}
