import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';

/** The checkout. */
export const ROOT = join(import.meta.dirname, '../..');

/** Date, commit and machine of a measurement, each as it is written in a document. */
export function readCircumstances(): {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
} {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const memory = `${Math.round(totalmem() / 1e9)} GB`;
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: readCommit(),
    machine: `${model}, ${availableParallelism()} cores, ${memory}, Linux ${release()}`,
  };
}

function readCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  try {
    const changes = git('status', '--porcelain', '--', 'src', 'otel', 'lab');
    return `${git('rev-parse', '--short=10', 'HEAD')}${changes === '' ? '' : ', with changes that are not committed'}`;
  } catch {
    return 'unknown';
  }
}

/** Replaces the text between a marker of a document and the next `end`, which stay. `path`: from the root of the checkout. */
export function replaceBetween(path: string, begin: string, end: string, text: string): void {
  const file = join(ROOT, path);
  const document = readFileSync(file, 'utf8');
  const beginAt = document.indexOf(begin);
  const endAt = document.indexOf(end, beginAt);
  if (beginAt === -1 || endAt === -1) throw new Error(`${path} lacks the markers of the results`);
  const before = document.slice(0, beginAt + begin.length);
  writeFileSync(file, `${before}\n\n${text}\n\n${document.slice(endAt)}`);
}

const MAX_FAILURES_PRINTED = 10;

/** Prints figures under a title, one per line. */
export function printFigures(title: string, figures: readonly (readonly [string, number | string])[]): void {
  console.log(`\n${title}`);
  for (const [name, value] of figures) console.log(`  ${name.padEnd(40)}${value}`);
}

/** Prints the first failures, one per line. */
export function printFailures(failures: readonly string[]): void {
  for (const failure of failures.slice(0, MAX_FAILURES_PRINTED)) console.log(`  FAILED ${failure}`);
}
