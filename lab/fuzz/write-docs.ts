import { readFileSync } from 'node:fs';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { MEMORY_BOUNDS } from './memory.ts';
import type { PlantedResult } from './planted/run-planted.ts';

/** The figures of some inputs of a target without a finding: those from the index `first`. */
export interface FuzzFigures {
  readonly name: string;
  readonly seed: number;
  readonly first: number;
  readonly inputs: number;
  readonly accepted: number;
  /** Of how many inputs the memory was measured. */
  readonly measured: number;
  readonly seconds: number;
}

/** Writes the table of docs/evidence/reliability.md from a file of figures, each a line of JSON. Of the same inputs, the last count. */
export function writeDocs(resultsPath: string, targets: readonly FuzzTarget[]): void {
  const lines = readFileSync(resultsPath, 'utf8').split('\n');
  const results = lines
    .filter((line) => line !== '')
    .map((line): FuzzFigures | PlantedResult => JSON.parse(line));
  const runs = results.filter((result) => 'first' in result);
  writePlanted(results.filter((result) => 'planted' in result));
  const pieces = [...new Map(runs.map((run) => [`${run.name} ${run.seed} ${run.first}`, run])).values()];
  const rows = targets.flatMap(({ name, reads, oracle }) => {
    const own = pieces.filter((piece) => piece.name === name);
    if (own.length === 0) return [];
    const sum = (figure: 'inputs' | 'accepted' | 'measured' | 'seconds') =>
      Math.round(own.reduce((total, piece) => total + piece[figure], 0));
    const cells = [name, reads, oracle, sum('inputs'), sum('accepted'), sum('measured'), sum('seconds')];
    return [
      `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`,
    ];
  });
  const { date, machine } = readCircumstances();
  const text = [
    `Run once until ${date} with seed 1 and Node ${process.version}, on ${machine}, shared with other work. Of these inputs none`,
    'was read wrongly, took more than two seconds, or threw anything but the error of its reader. *Accepted*: read as what the',
    'generator meant; the others are damaged and refused. *Memory*: how many of them, and of the same made up to 32 KiB',
    `longer, were read with memory measured; none ${MEMORY_BOUNDS}. Nor`,
    'did a run in which it was measured leave more than 16 MiB behind. Runs with fewer than a million inputs were cut off.',
    '',
    '| target | reads | must hold | inputs | accepted | memory | seconds |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
  replaceBetween('docs/evidence/reliability.md', '<!-- fuzz -->', '<!-- end of fuzz -->', text);
}

function writePlanted(results: readonly PlantedResult[]): void {
  if (results.length === 0) return;
  const latest = new Map(results.map((result) => [result.planted, result]));
  const rows = [...latest.values()].map(({ planted, target, inputs, reason }) => {
    const found = reason === null ? `not in ${inputs.toLocaleString('en')}` : inputs.toLocaleString('en');
    return `| ${target} | ${planted} | ${found} |`;
  });
  const text = ['| target | planted fault | found by input |', '|---|---|---:|', ...rows].join('\n');
  replaceBetween(
    'docs/evidence/reliability.md',
    '<!-- fuzz planted -->',
    '<!-- end of fuzz planted -->',
    text,
  );
}
