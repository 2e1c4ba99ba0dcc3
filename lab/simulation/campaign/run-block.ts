import type { Program } from '../program/program.ts';
import type { Plan } from '../world/plan.ts';
import { planWorld } from '../world/plan-world.ts';
import { runWorld, type WorldResult } from '../world/run-world.ts';
import type { TraceListener } from '../world/world.ts';
import type { Block, BlockResult } from './messages.ts';
import { readProgram } from './scripts.ts';

// A process of its own: argv names the directory of the scripts, messages the seeds.
if (import.meta.main) {
  const program = await readProgram(process.argv[2] ?? '');
  process.on('message', (block: Block) => {
    void runBlock(block, program).then((result) => process.send?.(result));
  });
  process.once('disconnect', () => process.exit(0));
  process.send?.('ready');
}

async function runBlock({ seeds }: Block, program: Program): Promise<BlockResult> {
  const from = seeds[0] ?? 0;
  const total = { from, to: from, seeds: 0, steps: 0, requests: 0, records: 0, simulatedMs: 0, cpuMs: 0 };
  const started = process.cpuUsage();
  for (const seed of seeds) {
    const result = await runPlan(planWorld(seed), program, null);
    const { user, system } = process.cpuUsage(started);
    total.cpuMs = (user + system) / 1_000;
    total.to = seed;
    total.seeds++;
    total.steps += result.steps;
    total.requests += result.requests;
    total.records += result.records;
    total.simulatedMs += result.durationMs;
    if (result.violation !== null) return { ...total, finding: { seed, text: result.violation.text } };
  }
  return { ...total, finding: null };
}

/** Runs a world. A defect of the simulation counts as a violation too. */
export async function runPlan(
  plan: Plan,
  program: Program,
  trace: TraceListener | null,
): Promise<WorldResult> {
  try {
    return await runWorld(plan, program, trace);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const text = `the simulation fails: ${cause instanceof Error ? cause.stack : String(cause)}`;
    return {
      violation: { text, step: 0, atMs: 0 },
      steps: 0,
      durationMs: 0,
      hash: 0,
      requests: 0,
      records: 0,
    };
  }
}
