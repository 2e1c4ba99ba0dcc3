import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, open, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';

const values = startProgram(
  `npm run lab -- repeat [options]
  Runs the tests of each change (npm test) again and again beside threads that compute, and tells which of them failed. Exits
  with 1 if any did.
  --runs N     so many runs (20)
  --minutes N  no run begins after that (1000)
  --busy N     so many threads that compute (2)
  --write      writes the figures into docs/evidence/mutation.md`,
  {
    runs: { type: 'string', default: '20' },
    minutes: { type: 'string', default: '1000' },
    busy: { type: 'string', default: '2' },
    write: { type: 'boolean' },
  },
);
const RUNS = toCount(values.runs);
const LIMIT_MS = toCount(values.minutes) * 60_000;
const BUSY = toCount(values.busy);
/** How many characters of the output are shown of a run that failed without a failed test. */
const SHOWN_OUTPUT = 4_000;

/** What vitest's JSON report says of a run. */
interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

interface Run {
  readonly seconds: number;
  readonly passed: number;
  /** The names of tests and files, with what each says; what vitest itself found wrong is one of them. */
  readonly failed: ReadonlyMap<string, string>;
}

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-repeat-'));
const busy = Array.from({ length: BUSY }, () => new Worker('for (;;);', { eval: true }));
const runs: Run[] = [];
for (let number = 1; number <= RUNS && performance.now() < LIMIT_MS; number++) {
  const run = await runTests(join(folder.path, String(number)));
  runs.push(run);
  console.log(`run ${number}: ${run.seconds} s, ${run.passed} passed, ${run.failed.size} failed`);
  for (const [name, message] of run.failed) console.log(`  FAILED ${name}\n    ${message.split('\n', 1)}`);
}
await Promise.all(busy.map((worker) => worker.terminate()));
const sentence = describe(runs);
console.log(sentence);
if (values.write === true) {
  replaceBetween('docs/evidence/mutation.md', '<!-- repeat -->', '<!-- end -->', sentence);
}
process.exitCode = runs.some(({ failed }) => failed.size > 0) ? 1 : 0;

async function runTests(path: string): Promise<Run> {
  const startedMs = performance.now();
  const [file, outputFile] = [`${path}.json`, `${path}.txt`];
  const output = await open(outputFile, 'w');
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${file}`];
  const child = spawn('npm', ['test', '--', ...reporters], {
    cwd: ROOT,
    stdio: ['ignore', output.fd, output.fd],
  });
  const [code] = await once(child, 'exit');
  await output.close();
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const report = await readReport(file);
  const failed = new Map<string, string>();
  for (const { name, status, assertionResults } of report.testResults) {
    const tests = assertionResults.filter((test) => test.status === 'failed');
    for (const { fullName, failureMessages } of tests) failed.set(fullName, failureMessages.join('\n'));
    if (status === 'failed' && tests.length === 0) failed.set(name, 'the file does not load');
  }
  if (code !== 0 && failed.size === 0) {
    // What no test can be blamed for, such as an error that nobody caught.
    console.log((await readFile(outputFile, 'utf8')).slice(-SHOWN_OUTPUT));
    failed.set('npm test', `ended with ${code}`);
  }
  return { seconds, passed: report.numPassedTests, failed };
}

/** Without a report the run came to no end, and its exit code says so. */
async function readReport(file: string): Promise<Report> {
  const text = await readFile(file, 'utf8').catch(() => null);
  return text === null ? { numPassedTests: 0, testResults: [] } : (JSON.parse(text) as Report);
}

function describe(all: readonly Run[]): string {
  const { date, commit, machine } = readCircumstances();
  const seconds = all.map((run) => run.seconds);
  const failures = all.flatMap(({ failed }) => [...failed.keys()]);
  const tests = Math.max(...all.map(({ passed, failed }) => passed + failed.size));
  return (
    `${date}, commit ${commit}, ${machine}, busy threads beside it: ${BUSY}; ${all.length} runs of ` +
    `${tests.toLocaleString('en')} tests in ${Math.min(...seconds)} to ${Math.max(...seconds)} s each, ` +
    (failures.length === 0 ? 'none failed.' : `failed: ${failures.join('; ')}.`)
  );
}
