import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { startBrowser } from '#testkit/programs/browser.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { ROOT, replaceBetween } from '#testkit/programs/results.ts';
import type { Backend, RunningBackend } from './backend.ts';
import { COLLECTOR, startCollector, TO_COLLECTOR } from './collector.ts';
import { type Fed, startFeeding, type Way } from './feed.ts';
import { JAEGER } from './jaeger.ts';
import { MLFLOW } from './mlflow.ts';
import { PHOENIX } from './phoenix.ts';
import { PROMETHEUS } from './prometheus.ts';
import { findProblem, VIEWS, type View } from './question.ts';
import { type Asked, toReport } from './report.ts';

const BACKENDS: readonly Backend[] = [PHOENIX, MLFLOW, JAEGER, PROMETHEUS, COLLECTOR];
const NAMES = BACKENDS.map(({ id }) => id);

const values = startProgram(
  `npm run lab -- backends [options]
  Starts real backends, feeds each with the records of a gateway, asks it through its own API for every view of
  docs/evidence/backends.md, and exits with 1 if an answer is not that of the records. Phoenix and Jaeger are fed directly and
  through the shipped collector. Installs and builds them on first use, some minutes each. Needs Linux, Go, Python 3 and
  Debian's prometheus.
  --only NAMES  some of ${NAMES.join(', ')}, separated by commas
  --direct      not through the collector, which need not be built then
  --pictures    takes the pictures of docs/images, too; needs Debian's chromium
  --write       writes the tables of docs/evidence/backends.md; needs all of them`,
  {
    only: { type: 'string', default: NAMES.join(',') },
    direct: { type: 'boolean', default: false },
    pictures: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
);

/** Set for the process inside. */
const INSIDE = 'SPANGATE_BACKENDS_FOLDER';
const chosen = BACKENDS.filter(({ id }) => values.only.split(',').includes(id));
const folder = process.env[INSIDE];
if (folder === undefined) await enter();
else await askAll(folder);

/** Starts this program once more, in a network namespace of its own, where all ports are free. */
async function enter(): Promise<void> {
  for (const backend of chosen) await backend.prepare();
  if (!values.direct) await COLLECTOR.prepare();
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'spangate-backends-'));
  const inside = ['--net', '--map-root-user', 'bash', '-c', 'ip link set lo up && exec "$@"', '--'];
  const { status } = spawnSync(
    'unshare',
    [...inside, process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [INSIDE]: temporary.path } },
  );
  process.exitCode = status ?? 1;
}

async function askAll(inside: string): Promise<void> {
  const asked: Asked[] = [];
  for (const backend of chosen) asked.push(...(await ask(backend, join(inside, backend.id))));
  if (values.write && !values.direct && chosen.length === BACKENDS.length && process.exitCode === undefined) {
    replaceBetween(
      'docs/evidence/backends.md',
      '<!-- backends -->',
      '<!-- end of backends -->',
      toReport(asked),
    );
  }
}

/** Asks a backend that is fed directly, and again behind the collector. */
async function ask(backend: Backend, own: string): Promise<readonly Asked[]> {
  const direct = await askOneWay(backend, join(own, 'direct'), (running) => ({ way: running.direct }));
  if (direct.behindCollector !== undefined && !values.direct) {
    await askOneWay(backend, join(own, 'collector'), ({ behindCollector = { heading: null, env: {} } }) => ({
      way: { config: TO_COLLECTOR, ...behindCollector.way },
      collector: behindCollector,
    }));
  }
  return [direct];
}

type Route = (running: RunningBackend) => {
  readonly way: Way;
  readonly collector?: NonNullable<RunningBackend['behindCollector']>;
};

async function askOneWay(
  backend: Backend,
  own: string,
  toRoute: Route,
): Promise<Asked & Pick<RunningBackend, 'behindCollector'>> {
  await using cleanUp = new AsyncDisposableStack();
  const [store, world] = [join(own, 'backend'), join(own, 'gateway')];
  for (const path of [store, world]) await mkdir(path, { recursive: true });
  const running = cleanUp.use(await backend.start(store));
  const { way, collector } = toRoute(running);
  if (collector !== undefined) cleanUp.use(await startOverlaid(world, collector));
  const { fed } = cleanUp.use(await startFeeding(world, way));
  const questions = running.questions(fed);
  const problems = [];
  for (const view of toAskedOrder(questions)) {
    const problem = await findProblem(questions[view]);
    if (problem !== null) problems.push(`${VIEWS[view]}: ${questions[view].query}: ${problem}`);
  }
  problems.push(...((await running.findMore?.(fed)) ?? []));
  report(`${running.title}, ${collector === undefined ? 'directly' : 'through the collector'}`, problems);
  if (values.pictures && collector === undefined) await takePicture(running, fed);
  return {
    title: running.title,
    questions,
    ...(running.behindCollector && { behindCollector: running.behindCollector }),
  };
}

/** What is empty is asked last, when everything has arrived. */
function toAskedOrder(questions: Asked['questions']): readonly View[] {
  const views = Object.keys(VIEWS) as View[];
  const isFilled = (view: View) => ['lit', 'attribute', 'own'].includes(questions[view].state);
  return [...views.filter(isFilled), ...views.filter((view) => !isFilled(view))];
}

/** The shipped collector with the YAML of docs/backends.md. */
async function startOverlaid(
  own: string,
  { heading, env }: NonNullable<RunningBackend['behindCollector']>,
): Promise<AsyncDisposable> {
  if (heading === null) return await startCollector(own, [], env);
  const snippet = (await readSnippets(join(ROOT, 'docs/backends.md'), 'yaml')).get(heading);
  if (snippet === undefined) throw new Error(`docs/backends.md has no configuration for ${heading}`);
  const overlay = join(own, 'overlay.yaml');
  await writeFile(overlay, snippet);
  return await startCollector(own, [overlay], env);
}

async function takePicture(running: RunningBackend, fed: Fed): Promise<void> {
  if (running.takePicture === undefined) return;
  await using browser = await startBrowser();
  console.log(`        docs/images/${await running.takePicture(browser, fed)}`);
}

function report(what: string, problems: readonly string[]): void {
  const count = Object.keys(VIEWS).length;
  if (problems.length === 0) console.log(`ok      ${what}: ${count} views, each answer as expected`);
  else process.exitCode = 1;
  for (const problem of problems) console.error(`FAILED  ${what}: ${problem}`);
}
