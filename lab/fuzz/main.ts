import { writeFileSync } from 'node:fs';
import { startProgram, toCount } from '../support/program.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { type Finding, runTarget, type TargetResult } from './run-target.ts';
import { TARGETS } from './targets/targets.ts';
import { type FuzzFigures, writeDocs } from './write-docs.ts';

const USAGE = `npm run fuzz -- [options]
  Gives random and damaged inputs to the readers behind the wire, and compares what they read with a reference. Prints
  the first input that is read wrongly, made smaller, with the command that repeats it, and exits with 1. The parser of
  HTTP has a fuzzer of its own: npm run fuzz:http.
  --target T    one of ${TARGETS.map(({ name }) => name).join(', ')} (all)
  --inputs N    number of inputs of each target (its share of CI's)
  --seed N      seed of their generator (1)
  --first N     index of the first input (0), to repeat a finding
  --results F   adds the figures to a file of JSON lines
  --write F     runs nothing, and writes the figures of such a file into docs/reliability.md`;

const values = startProgram(USAGE, {
  target: { type: 'string' },
  inputs: { type: 'string' },
  seed: { type: 'string', default: '1' },
  first: { type: 'string', default: '0' },
  results: { type: 'string' },
  write: { type: 'string' },
});
/** Inputs between two lines of progress. */
const REPORT_INPUTS = 100_000;
if (values.write !== undefined) writeDocs(values.write, TARGETS);
else process.exitCode = await run();

async function run(): Promise<number> {
  const chosen = TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
  if (chosen.length === 0) {
    console.error(`there is no target ${values.target}\n${USAGE}`);
    return 2;
  }
  const seed = toCount(values.seed);
  let found = 0;
  for (const target of chosen) {
    const inputs = values.inputs === undefined ? target.ciInputs : toCount(values.inputs);
    const startedMs = performance.now();
    const result = await runTarget(
      target,
      { seed, first: toCount(values.first), inputs },
      progressOf(target),
    );
    const seconds = (performance.now() - startedMs) / 1000;
    console.log(toLine(target, seed, result, seconds));
    if (result.finding !== null) {
      found++;
      console.error(toReport(result.finding));
    } else if (values.results !== undefined) {
      const { name } = target;
      const line: FuzzFigures = {
        name,
        seed,
        inputs: result.inputs,
        accepted: result.accepted,
        seconds: Math.round(seconds),
      };
      writeFileSync(values.results, `${JSON.stringify(line)}\n`, { flag: 'a' });
    }
  }
  return found === 0 ? 0 : 1;
}

function progressOf({ name }: FuzzTarget): (done: number) => void {
  return (done) => {
    if (done % REPORT_INPUTS === 0) console.error(`${name}: ${done} inputs …`);
  };
}

function toLine(
  { name }: FuzzTarget,
  seed: number,
  { inputs, accepted }: TargetResult,
  seconds: number,
): string {
  return `${name.padEnd(12)} seed ${seed}: ${inputs} inputs, ${accepted} accepted, ${seconds.toFixed(1)} s`;
}

function toReport({ target, seed, index, input, smallest, reason }: Finding): string {
  const { bytes, cuts, variant } = smallest;
  return [
    `FOUND by ${target.name}: ${reason}`,
    `input:   ${JSON.stringify(bytes.toString('latin1'))} (latin1; ${input.bytes.length} bytes before it was made smaller)`,
    `cuts:    ${cuts.length === 0 ? 'none' : cuts.join(', ')}`,
    `variant: ${variant}`,
    `again:   npm run fuzz -- --target ${target.name} --seed ${seed} --first ${index} --inputs 1`,
  ].join('\n');
}
