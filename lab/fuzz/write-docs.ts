import { readFileSync } from 'node:fs';
import { readCircumstances, replaceBetween } from '../support/results.ts';
import type { FuzzTarget } from './fuzz-target.ts';

/** The figures of one run of a target without a finding. */
export interface FuzzFigures {
  readonly name: string;
  readonly seed: number;
  readonly inputs: number;
  readonly accepted: number;
  readonly seconds: number;
}

/** Writes the table of docs/reliability.md from a file of figures, a line of JSON for each run. The last run counts. */
export function writeDocs(resultsPath: string, targets: readonly FuzzTarget[]): void {
  const lines = readFileSync(resultsPath, 'utf8').split('\n');
  const runs = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as FuzzFigures);
  const byName = new Map(runs.map((run) => [run.name, run]));
  const rows = targets.flatMap(({ name, reads, oracle }) => {
    const run = byName.get(name);
    if (run === undefined) return [];
    const cells = [name, reads, oracle, run.inputs, run.accepted, run.seconds];
    return [
      `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`,
    ];
  });
  const { date, machine } = readCircumstances();
  const text = [
    `Run once on ${date} with seed 1 and Node ${process.version}, on ${machine}, shared with other work. Of these inputs none`,
    'was read wrongly, took more than two seconds, or threw anything but the error of its reader. *Accepted*: read as what the generator',
    'meant; the others are damaged and refused.',
    '',
    '| target | reads | must hold | inputs | accepted | seconds |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
  replaceBetween('docs/reliability.md', '<!-- fuzz -->', '<!-- end of fuzz -->', text);
}
