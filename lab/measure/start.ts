import { mkdirSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { startChild, untilListening } from '#testkit/programs/child.ts';
import { readCpu, readRssBytes, toSpentUs } from '#testkit/programs/process-tree.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { toSpread } from '#testkit/programs/statistics.ts';
import { runLoad } from '../bench/driver.ts';
import { PROMPT_CHARS, writeBody } from '../bench/loads.ts';
import { startReplica } from '../bench/run-case.ts';
import { gatewayTargets } from '../bench/targets/gateway.ts';
import type { Target } from '../bench/targets/target.ts';
import { buildNative, type NativePrograms } from '../bench/workspace.ts';

const USAGE = `npm run lab -- measure/start [options]
  Starts gateways as their image does, one after another, and sends requests at a steady rate from the moment on when
  each listens: what the first second, the next four and the rest of half a minute cost, and how long they take. Linux
  only; needs gcc.
  --baseline DIR  gateways of another checkout in turn with those of this one
  --rounds N      starts of each (default 5)
  --rate N        requests per second (default 300); every second one is a stream
  --write         writes docs/evidence/benchmarks.md`;

const { baseline, rounds, rate, write } = startProgram(USAGE, {
  baseline: { type: 'string' },
  rounds: { type: 'string', default: '5' },
  rate: { type: 'string', default: '300' },
  write: { type: 'boolean', default: false },
});
const ROUNDS = toCount(rounds);
const RATE = toCount(rate);

/** The windows after the moment when the gateway listens. */
const WINDOWS = [
  { name: 'first second', ms: 1_000 },
  { name: 'seconds 2 to 5', ms: 4_000 },
  { name: 'seconds 6 to 30', ms: 25_000 },
] as const;
const START_TIMEOUT_MS = 60_000;
const MAX_CONNECTIONS = 64;

/** The figures of one start, by the titles of their columns. */
type Figures = Readonly<Record<string, number>>;

await measure();

async function measure(): Promise<void> {
  const programs = buildNative();
  const targets = gatewayTargets.filter(
    ({ name }) => name === 'gateway' || (name === 'baseline' && baseline),
  );
  const starts = new Map<Target, Figures[]>(targets.map((target) => [target, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of targets) {
      const figures = await startOnce(target, programs);
      starts.get(target)?.push(figures);
      console.log(`${target.name}, start ${round + 1} of ${ROUNDS}`);
    }
  }
  const { date, commit, machine } = readCircumstances();
  const names = [...starts.values()].flatMap((all) => Object.keys(all[0] ?? {}));
  const text = [
    `${date}, commit ${commit}, ${machine}; ${RATE} requests per second, median of ${ROUNDS} starts with the least and greatest.`,
    '',
    `| | ${targets.map(({ name }) => name).join(' | ')} |`,
    `|---|${'---:|'.repeat(targets.length)}`,
    ...[...new Set(names)].map((name) => {
      const cells = [...starts.values()].map((all) =>
        toCell(all.map((figures) => figures[name] ?? Number.NaN)),
      );
      return `| ${name} | ${cells.join(' | ')} |`;
    }),
  ].join('\n');
  console.log(`\n${text}`);
  if (write)
    replaceBetween('docs/evidence/benchmarks.md', '<!-- measured: measure/start -->', '<!-- end -->', text);
}

async function startOnce(target: Target, programs: NativePrograms): Promise<Figures> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-start-'));
  const folder = temporary.path;
  const replica = await startReplica(programs.replica, 1, folder);
  await using _ = replica.child;
  const [collectorPort = 0] = replica.ports;
  const port = await findFreePort();
  const closedPort = await findFreePort();
  mkdirSync(join(folder, 'gateway'));
  const command = target.prepare({
    port,
    replicaPorts: replica.ports,
    collectorPort,
    closedPort,
    sparePort: 0,
    folder: join(folder, 'gateway'),
    baseline: baseline === undefined ? null : resolve(baseline),
    nodeFlags: [],
  });
  const startedMs = performance.now();
  await using child = startChild(command, { logPath: join(folder, 'output.log') });
  await untilListening(child, port, START_TIMEOUT_MS);
  const figures: Record<string, number> = {
    'until it listens, ms': performance.now() - startedMs,
    'CPU until then, ms': toSpentUs(readCpu(0), readCpu(child.pid)) / 1_000,
  };
  const aim = { driver: programs.driver, port, pid: child.pid, logPath: join(folder, 'driver.log') };
  const headers = ['X-Tenant: acme', 'X-Feature: bench'];
  for (const { name, ms } of WINDOWS) {
    const [plain, streams] = await Promise.all(
      ['plain', '@@burst'].map((mark) =>
        runLoad(aim, {
          mode: 'open',
          path: '/v1/chat/completions',
          headers,
          warmMs: 0,
          runMs: ms,
          bodyFile: writeBody(folder, mark, PROMPT_CHARS),
          connections: MAX_CONNECTIONS,
          ratePerSecond: RATE / 2,
        }),
      ),
    );
    if (plain === undefined || streams === undefined) throw new Error('there are two loads');
    figures[`${name}: CPU per request, µs`] = plain.cpuUs / (plain.requests + streams.requests);
    figures[`${name}: p99, ms`] = plain.p99Us / 1_000;
    figures[`${name}: p50, ms`] = plain.p50Us / 1_000;
    figures[`${name}: worst, ms`] = plain.maxUs / 1_000;
    figures[`${name}: streams, p99, ms`] = streams.p99Us / 1_000;
  }
  figures['memory at the end, MB'] = readRssBytes(child.pid) / 1_000_000;
  return figures;
}

function toCell(values: readonly number[]): string {
  const { median, min, max } = toSpread(values);
  const print = (value: number) => value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });
  return print(min) === print(max) ? print(median) : `${print(median)} (${print(min)} to ${print(max)})`;
}
