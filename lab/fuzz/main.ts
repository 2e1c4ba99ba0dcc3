import { writeFileSync } from 'node:fs';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { type PlantedResult, runPlanted } from './planted/run-planted.ts';
import { type Finding, type Piece, runTarget } from './run-target.ts';
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
  --planted     plants faults in the sources, one at a time, and says after how many inputs each is found
  --results F   adds the figures to a file of JSON lines
  --write F     runs nothing, and writes the figures of such a file into docs/evidence/reliability.md`;

const values = startProgram(USAGE, {
  target: { type: 'string' },
  inputs: { type: 'string' },
  seed: { type: 'string', default: '1' },
  first: { type: 'string', default: '0' },
  planted: { type: 'boolean', default: false },
  results: { type: 'string' },
  write: { type: 'string' },
});
const MAX_PLANTED_INPUTS = 50_000;
if (values.write !== undefined) writeDocs(values.write, TARGETS);
else process.exitCode = await (values.planted ? plant() : run());

async function run(): Promise<number> {
  const chosen = TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
  if (chosen.length === 0) {
    console.error(`there is no target ${values.target}\n${USAGE}`);
    return 2;
  }
  let found = 0;
  for (const target of chosen) {
    const inputs = values.inputs === undefined ? target.ciInputs : toCount(values.inputs);
    if (!(await runPieces(target, inputs))) found++;
  }
  return found === 0 ? 0 : 1;
}

/** Returns 1 if a fault is not found. */
async function plant(): Promise<number> {
  const maxInputs = values.inputs === undefined ? MAX_PLANTED_INPUTS : toCount(values.inputs);
  let missed = 0;
  for await (const result of runPlanted(values.target ?? null, maxInputs)) {
    const { planted, target, inputs, reason } = result;
    console.log(
      `${target.padEnd(12)} ${reason === null ? 'NOT FOUND' : 'found'} in ${inputs} inputs: ${planted}`,
    );
    if (reason === null) missed++;
    note(result);
  }
  return missed === 0 ? 0 : 1;
}

function note(figures: FuzzFigures | PlantedResult): void {
  if (values.results === undefined) return;
  writeFileSync(values.results, `${JSON.stringify(figures)}\n`, { flag: 'a' });
}

/** Returns false after a finding. A long run that ends early has the figures of its whole pieces. */
async function runPieces(target: FuzzTarget, inputs: number): Promise<boolean> {
  const seed = toCount(values.seed);
  let startedMs = performance.now();
  const toFigures = ({ first, inputs, accepted, measured }: Piece): FuzzFigures => {
    const seconds = Math.round((performance.now() - startedMs) / 100) / 10;
    startedMs = performance.now();
    return { name: target.name, seed, first, inputs, accepted, measured, seconds };
  };
  const onPiece = (piece: Piece) => {
    const figures = toFigures(piece);
    console.log(toLine(figures));
    note(figures);
  };
  const result = await runTarget(target, { seed, first: toCount(values.first), inputs }, { onPiece });
  if (result.finding === null) return true;
  console.log(toLine(toFigures(result)));
  console.error(toReport(result.finding));
  return false;
}

function toLine({ name, seed, first, inputs, accepted, measured, seconds }: FuzzFigures): string {
  const from = first === 0 ? '' : ` from ${first}`;
  return `${name.padEnd(12)} seed ${seed}: ${inputs} inputs${from}, ${accepted} accepted, memory of ${measured}, ${seconds} s`;
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
