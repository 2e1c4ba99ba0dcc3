import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import type { Target } from './targets/target.ts';

const BEGIN = '<!-- results: written by npm run bench -->';
const END = '<!-- end of results -->';

/** Date, commit, machine, command and versions of a measurement, and what each target records, as Markdown. */
export function toCircumstances(targets: readonly Target[], args: readonly string[]): string {
  const versions = targets.flatMap(({ name, readVersion }) =>
    readVersion === undefined ? [] : [`${name} ${readVersion() ?? '(version unknown)'}`],
  );
  const { date, commit, machine } = readCircumstances();
  return [
    `- Date: ${date}`,
    `- Commit: ${commit}`,
    `- Machine: ${machine}`,
    `- Command: \`${['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' ')}\``,
    `- Versions: ${versions.join(', ')}`,
    '',
    '| Target | What it records of a request |',
    '|---|---|',
    ...targets.map(({ name, records = 'nothing' }) => `| ${name} | ${records} |`),
  ].join('\n');
}

/** Replaces the results in docs/evidence/benchmarks.md. */
export function writeDocs(results: string): void {
  replaceBetween('docs/evidence/benchmarks.md', BEGIN, END, results);
}
