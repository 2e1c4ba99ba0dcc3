import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Target } from './targets/target.ts';
import { ROOT } from './workspace.ts';

const FILE = join(ROOT, 'docs/benchmarks.md');
const BEGIN = '<!-- results: written by npm run bench -->';
const END = '<!-- end of results -->';

/** When, on what and with which versions something was measured, as Markdown. */
export function toCircumstances(targets: readonly Target[], args: readonly string[]): string {
  const versions = targets.flatMap(({ name, readVersion }) =>
    readVersion === undefined ? [] : [`${name} ${readVersion() ?? '(version unknown)'}`],
  );
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  return [
    `- Date: ${new Date().toISOString().slice(0, 10)}`,
    `- Commit: ${readCommit()}`,
    `- Machine: ${model}, ${availableParallelism()} cores, ${Math.round(totalmem() / 1e9)} GB, Linux ${release()}`,
    `- Command: \`${['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' ')}\``,
    `- Versions: ${versions.join(', ')}`,
  ].join('\n');
}

/** Puts the results between the marks in docs/benchmarks.md; what people wrote around them stays. */
export function writeDocs(results: string): void {
  const text = readFileSync(FILE, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin) throw new Error('docs/benchmarks.md has lost the marks for the results');
  writeFileSync(FILE, `${text.slice(0, begin + BEGIN.length)}\n\n${results}\n\n${text.slice(end)}`);
}

function readCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  try {
    const changes = git('status', '--porcelain', '--', 'src', 'otel', 'bench');
    return `${git('rev-parse', '--short=10', 'HEAD')}${changes === '' ? '' : ', with changes that are not committed'}`;
  } catch {
    return 'unknown';
  }
}
