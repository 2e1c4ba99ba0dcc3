import { appendFileSync, readFileSync } from 'node:fs';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import type { BlockResult } from './messages.ts';
import { addFigures } from './search.ts';

/** A line of a file of results: what became of one block of seeds, at which commit of the sources. */
interface ResultLine extends BlockResult {
  readonly commit: string;
}

/** The figures of a summary. */
type Figures = Pick<BlockResult, 'seeds' | 'steps' | 'requests' | 'records' | 'simulatedMs' | 'cpuMs'> & {
  /** The seeds that have found something. */
  readonly findings: readonly number[];
};

/** Appends what became of a block, so that a run that is cut off has not been for nothing. */
export function appendResult(path: string, commit: string, result: BlockResult): void {
  appendFileSync(path, `${JSON.stringify({ commit, ...result } satisfies ResultLine)}\n`);
}

/** Adds up files of results, and writes the sums into the documentation if `isWritten`. Returns the exit code. */
export function sumResults(paths: readonly string[], isWritten: boolean): number {
  const lines = paths
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line): ResultLine => JSON.parse(line));
  const summaries = toSummaries(lines);
  for (const summary of summaries) console.log(summary);
  if (isWritten) writeFigures('beside other work, by commit', summaries);
  return lines.some(({ finding }) => finding !== null) ? 1 : 0;
}

/** One line about each commit. */
export function toSummaries(lines: readonly ResultLine[]): readonly string[] {
  return [...Map.groupBy(lines, ({ commit }) => commit)].map(([commit, all]) => {
    const blocks = all.toSorted((a, b) => a.from - b.from);
    const total = { seeds: 0, steps: 0, requests: 0, records: 0, simulatedMs: 0, cpuMs: 0 };
    const ranges: { from: number; to: number }[] = [];
    for (const block of blocks) {
      const last = ranges.at(-1);
      if (last !== undefined && block.from <= last.to) throw new Error(`seed ${block.from} was run twice`);
      if (last !== undefined && block.from === last.to + 1) last.to = block.to;
      else ranges.push({ from: block.from, to: block.to });
      addFigures(total, block);
    }
    const findings = blocks.flatMap(({ finding }) => (finding === null ? [] : [finding.seed]));
    const seeds = ranges.map(({ from, to }) => `${from} to ${to}`).join(', ');
    return `${commit}: ${toSummary(`(seeds ${seeds})`, { ...total, findings })}`;
  });
}

/** One line about worlds. */
export function toSummary(which: string, figures: Figures): string {
  const { seeds, steps, requests, records, simulatedMs, cpuMs, findings } = figures;
  const hours = (simulatedMs / 3_600_000).toFixed(1);
  return (
    `${seeds} worlds ${which}: ${steps} steps, ${requests} requests, ${records} records, ${hours} simulated hours, ` +
    `${findings.length === 0 ? 'no finding' : `findings in seeds ${findings.join(', ')}`}, ${(cpuMs / 1_000).toFixed(0)} s of CPU time`
  );
}

/** Writes summaries into the documentation. */
export function writeFigures(where: string, summaries: readonly string[]): void {
  const { date } = readCircumstances();
  const text = `On ${date}, ${where}:\n\n\`\`\`\n${summaries.join('\n')}\n\`\`\``;
  replaceBetween(
    'docs/evidence/reliability.md',
    '<!-- simulated -->',
    '<!-- end of what was simulated -->',
    text,
  );
}
