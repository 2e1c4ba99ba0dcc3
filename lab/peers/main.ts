import { mkdtempDisposable } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from '#testkit/load/load.ts';
import { type Child, startChild } from '#testkit/programs/child.ts';
import { askAdmin, startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';

const USAGE = `npm run lab -- peers [--rate N] [--seconds N] [--workers N] [--write]
  A gateway with health.peers before four simulated engines, each a process of its own, under load. One of
  the engines is bad from the start; in one case none is.
  --rate       requests per second, of all engines together (default 40)
  --seconds    how long a bad engine may take to be found, and how long equal ones are watched (default 300)
  --workers    of the gateway (default 2)
  --write      writes the figures into docs/evidence/health.md
  Exits with 1 if an equal engine is found, or a bad one is not.`;

const NO_COLLECTOR = 'http://127.0.0.1:9';
const NAMES = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'] as const;

/**
 * The engines, but for the bad one. They are slow, so that 20 % of a time is more than a busy machine adds to it; a machine
 * that is slow for all of them makes none worse than its peers.
 */
const EQUAL = { ttftMs: 250, gapMs: 50, errorRate: 0 };

/** The cases, with what the first engine is like. Null: like the others. */
const CASES: readonly (readonly [title: string, bad: Partial<typeof EQUAL> | null])[] = [
  ['equal', null],
  ['fails 5 % of its requests', { errorRate: 0.05 }],
  ['20 % slower', { ttftMs: 300, gapMs: 60 }],
  ['twice as slow', { ttftMs: 500, gapMs: 100 }],
];

/** What became of a case. */
interface Report {
  /** The first replica that was found failing, why, and when; null: none. */
  readonly found: { readonly name: string; readonly reasons: string; readonly afterS: number } | null;
  readonly requests: number;
  /** Sent per second: fewer than asked for on a machine that is too slow. */
  readonly perSecond: number;
  readonly failures: number;
}

const { rate, seconds, workers, write } = startProgram(USAGE, {
  rate: { type: 'string', default: '40' },
  seconds: { type: 'string', default: '300' },
  workers: { type: 'string', default: '2' },
  write: { type: 'boolean', default: false },
});
process.exitCode = (await measure(toCount(rate), toCount(seconds))) ? 0 : 1;

/** Runs the cases and prints a table, which it may write. Returns whether each ended as it should. */
async function measure(perSecond: number, limitS: number): Promise<boolean> {
  const { date, commit, machine } = readCircumstances();
  const lines = [
    `${date}, commit ${commit}, ${machine}; ${workers} workers.`,
    '',
    '| One of four engines | Found | After | Requests/s of all | Requests | Load of the machine |',
    '|---|---|---:|---:|---:|---:|',
  ];
  let isRight = true;
  for (const [title, bad] of CASES) {
    const { found, requests, failures, perSecond: sent } = await runCase(bad, perSecond, limitS);
    isRight &&= bad === null ? found === null : found?.name === NAMES[0];
    const cells =
      found === null
        ? ['nothing', `watched for ${limitS} s`]
        : [`${found.name}: ${found.reasons}`, `${found.afterS.toFixed(0)} s`];
    lines.push(
      `| ${[title, ...cells, sent, `${requests}, ${failures} failed`, loadOfMachine()].join(' | ')} |`,
    );
    console.log(lines.at(-1));
  }
  console.log(lines.join('\n'));
  if (write)
    replaceBetween(
      'docs/evidence/health.md',
      '<!-- measured: peers -->',
      '<!-- end: peers -->',
      lines.join('\n'),
    );
  return isRight;
}

/** How many threads want a core, on average over the last five minutes. */
function loadOfMachine(): string {
  const [, fiveMinutes = 0] = loadavg();
  return `${fiveMinutes.toFixed(1)} on ${availableParallelism()} cores`;
}

/** Runs one case until a replica is found failing, or for so long. */
async function runCase(
  bad: Partial<typeof EQUAL> | null,
  perSecond: number,
  limitS: number,
): Promise<Report> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-peers-'))).path;
  const replicas: { name: string; url: string }[] = [];
  for (const [index, name] of NAMES.entries()) {
    const engine = cleanUp.use(startEngine(name, index, { ...EQUAL, ...(index === 0 ? bad : null) }));
    replicas.push({ name, url: await urlOf(engine) });
  }
  const gateway = cleanUp.use(
    await startGatewayProcess({
      folder,
      replicas,
      collectorUrl: NO_COLLECTOR,
      workers: toCount(workers),
      health: { passive: false, active: false, frozen_after: 'off', peers: {} },
    }),
  );
  const startedMs = performance.now();
  const load = new Load(gateway.url, perSecond);
  let found: Report['found'] = null;
  while (found === null && performance.now() - startedMs < limitS * 1_000) {
    await sleep(200);
    const answer = (await askAdmin(gateway.adminUrl, 'GET', '/admin/replicas')) as {
      readonly replicas: readonly {
        name: string;
        health: string | null;
        health_reasons: readonly string[];
      }[];
    };
    const failing = answer.replicas.find(({ health }) => health === 'failing');
    if (failing === undefined) continue;
    const afterS = (performance.now() - startedMs) / 1_000;
    found = { name: failing.name, reasons: failing.health_reasons.join(', '), afterS };
  }
  const { requests, failures, perSecond: sent } = await load.stop();
  return { found, requests, perSecond: sent, failures: failures.length };
}

function startEngine(name: string, seed: number, { ttftMs, gapMs, errorRate }: typeof EQUAL): Child {
  const args = [
    ...['simulate', '--name', name, '--model', 'm', '--tokens', '16', '--seed', String(seed + 1)],
    ...['--ttft', `${ttftMs}ms`, '--gap', `${gapMs}ms`, '--error-rate', String(errorRate)],
  ];
  const command = { file: process.execPath, args: [join(ROOT, 'src/main.ts'), ...args], isIsolated: true };
  return startChild(command, { stdout: 'lines' });
}

async function urlOf(engine: Child): Promise<string> {
  const line = await engine.untilLine((each) => each.includes('http://'));
  const [url] = /http:\/\/[\w.:[\]]+/.exec(line) ?? [];
  if (url === undefined) throw new Error(`no address in: ${line}`);
  return url.replace(/\.$/, '');
}
