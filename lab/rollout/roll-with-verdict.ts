import { mkdtempDisposable } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Load } from '#testkit/load/load.ts';
import { startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import type { Tell } from '#testkit/programs/progress.ts';
import { CONNECT_TIMEOUT } from '#testkit/programs/replica-set.ts';
import { readRolloutLines, startRollout, toRestartCommand } from '#testkit/programs/rollout-command.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { type Successor, startChangingEngines } from './changing-engines.ts';

/** How one replica of four is rolled. */
export interface VerdictCase {
  readonly title: string;
  /** What the engine is after its restart. */
  readonly successor: Successor;
  /** Default: 10s. */
  readonly ramp?: string;
  /** Whether the engine must answer a small request first. */
  readonly isProbed?: boolean;
  /** `health.frozen_after` of the gateway. */
  readonly frozenAfter?: string;
  /** Whether the rollout is interrupted during the ramp, and resumed. */
  readonly isInterrupted?: boolean;
  /** Whether there are two gateways that share a Redis server. */
  readonly isFleet?: boolean;
  /** The exit codes of `gateway rollout`, in turn. */
  readonly exitCodes: readonly number[];
}

/** Four engines under 200 requests per second; the first is rolled. */
export const VERDICT_CASES: readonly VerdictCase[] = [
  { title: '(a) equal', successor: 'equal', exitCodes: [0] },
  { title: '(b) 20 % slower', successor: 'slower', exitCodes: [3] },
  { title: '(c) fails 5 %', successor: 'failing', exitCodes: [3] },
  { title: '(d) frozen', successor: 'frozen', ramp: '60s', exitCodes: [3] },
  {
    title: '(d) frozen, `health.frozen_after: 2s`',
    successor: 'frozen',
    ramp: '60s',
    frozenAfter: '2s',
    exitCodes: [3],
  },
  { title: '(d) frozen, with `--probe`', successor: 'frozen', isProbed: true, exitCodes: [1] },
  { title: '(e) never comes back', successor: 'absent', exitCodes: [1] },
  {
    title: '(f) equal, interrupted during the ramp and resumed',
    successor: 'equal',
    isInterrupted: true,
    exitCodes: [130, 0],
  },
  { title: '(g) equal, behind two gateways with Redis', successor: 'equal', isFleet: true, exitCodes: [0] },
];

/** The result of a case. */
export interface VerdictReport {
  readonly exitCodes: readonly (number | null)[];
  /** What the rollout said last of the replica. */
  readonly sentence: string;
  /** From the undrain to the verdict; null if there was no undrain. */
  readonly verdictAfterS: number | null;
  readonly requests: number;
  /** Those of all gateways together. Fewer than 200 on a machine that is too busy. */
  readonly perSecond: number;
  readonly lost: number;
  /** How many of those the engine failed, or held until it was ended. */
  readonly lostByEngine: number;
}

const REQUESTS_PER_SECOND = 200;
const NO_COLLECTOR = 'http://127.0.0.1:9';
const ROLLED = 'vllm-0';

/** About a hundred are open at this rate, and a frozen engine holds as many more. */
const MAX_OPEN = 300;

/** Failures that the gateway answers with. */
const OF_GATEWAY = /status (?:429|50[234])$/;

/** Rolls one of four engines. */
export async function rollWithVerdict(
  {
    successor,
    ramp = '10s',
    isProbed = false,
    frozenAfter,
    isInterrupted = false,
    isFleet = false,
  }: VerdictCase,
  tell: Tell,
): Promise<VerdictReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-verdict-'))).path;
  const engines = cleanUp.use(await startChangingEngines(successor));
  const redisUrl = isFleet ? (await cleanUp.use(await startRedisServer()).openLink()).url : null;
  const names = isFleet ? ['gateway-1', 'gateway-2'] : ['gateway-1'];
  const gateways = await Promise.all(
    names.map((name) =>
      startGatewayProcess({
        folder: join(folder, name),
        replicas: engines.replicas,
        collectorUrl: NO_COLLECTOR,
        connectTimeout: CONNECT_TIMEOUT,
        ...(frozenAfter === undefined
          ? {}
          : { health: { passive: false, active: false, frozen_after: frozenAfter } }),
        ...(redisUrl === null ? {} : { fleet: { name, redisUrl } }),
      }),
    ),
  );
  for (const gateway of gateways) cleanUp.use(gateway);
  const loads = gateways.map(
    ({ url }) =>
      new Load(url, REQUESTS_PER_SECOND / gateways.length, [new Agent({ keepAlive: true })], MAX_OPEN),
  );
  await Promise.all(loads.map((load) => load.untilEnded(REQUESTS_PER_SECOND)));

  const args = [
    ...[ROLLED, '--ramp', ramp, '--restart-timeout', '15s', '--compare-timeout', '2m'],
    ...['--exec', toRestartCommand(engines), ...(isProbed ? ['--probe'] : [])],
  ];
  const command = { folder, adminUrls: gateways.slice(0, 1).map(({ adminUrl }) => adminUrl) };
  const first = await follow({ ...command, args }, isInterrupted, tell);
  const runs = isInterrupted
    ? [first, await follow({ ...command, args: ['--resume'] }, false, tell)]
    : [first];

  // What a frozen engine holds is lost when it is ended.
  const heldCount = await engines.endFrozen();
  const results = await Promise.all(loads.map((load) => load.stop()));
  const failures = results.flatMap((result) => result.failures);
  const last = runs.at(-1);
  return {
    exitCodes: runs.map(({ exitCode }) => exitCode),
    sentence: last?.sentence ?? '',
    verdictAfterS: last?.verdictAfterS ?? null,
    requests: results.reduce((sum, { requests }) => sum + requests, 0),
    perSecond: results.reduce((sum, { perSecond }) => sum + perSecond, 0),
    lost: failures.length,
    lostByEngine:
      successor === 'failing' ? failures.filter((failure) => !OF_GATEWAY.test(failure)).length : heldCount,
  };
}

interface Run extends Pick<VerdictReport, 'sentence' | 'verdictAfterS'> {
  readonly exitCode: number | null;
}

/** Runs a rollout to its end. `isInterrupted`: it gets SIGTERM, which counts like Ctrl-C, during the ramp. */
async function follow(
  command: Parameters<typeof startRollout>[0],
  isInterrupted: boolean,
  tell: Tell,
): Promise<Run> {
  await using rollout = startRollout(command);
  let undrainedMs: number | null = null;
  let verdictAfterS: number | null = null;
  let sentence = '';
  for await (const { replica, phase, text, time } of readRolloutLines(rollout)) {
    tell(`${replica} ${text}`);
    sentence = text;
    const atMs = Date.parse(time);
    if (phase === 'ramp') undrainedMs ??= atMs;
    if (phase === 'ramp' && isInterrupted && text.includes('%')) {
      return { exitCode: await rollout.end('SIGTERM'), sentence, verdictAfterS };
    }
    if (phase === 'done' || phase === 'stopped') {
      verdictAfterS = undrainedMs === null ? null : (atMs - undrainedMs) / 1_000;
    }
  }
  return { exitCode: await rollout.exited, sentence, verdictAfterS };
}
