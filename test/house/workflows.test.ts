import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const FOLDER = join(import.meta.dirname, '../../.github/workflows');

interface Step {
  readonly run?: string;
  readonly uses?: string;
}

interface Workflow {
  readonly permissions: unknown;
  readonly jobs: Readonly<
    Record<string, { readonly 'timeout-minutes'?: number; readonly steps: readonly Step[] }>
  >;
}

/** What each workflow runs: what people run, too. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  'change.yml': ['.ci/run'],
  'nightly.yml': ['.ci/nightly', 'git diff -- docs >results.diff'],
  'release.yml': ['npm ci --no-audit --no-fund', 'npm run release -- "$VERSION" --dry-run'],
};

test('workflows run what people run, read only, with a bound, and put no input into a script', async () => {
  expect((await readdir(FOLDER)).toSorted()).toEqual(Object.keys(RUNS).toSorted());
  for (const [name, runs] of Object.entries(RUNS)) {
    const { permissions, jobs } = parse(await readFile(join(FOLDER, name), 'utf8')) as Workflow;
    expect(permissions, name).toEqual({ contents: 'read' });
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    for (const job of Object.values(jobs)) expect(job['timeout-minutes'], name).toBeGreaterThan(0);
    expect(
      steps.flatMap(({ run }) => (run === undefined ? [] : [run])),
      name,
    ).toEqual(runs);
    for (const { run = '' } of steps) expect(run, name).not.toContain('${{');
    for (const { uses } of steps)
      if (uses !== undefined) expect(uses, name).toMatch(/^actions\/[\w-]+@v\d+$/);
  }
});
