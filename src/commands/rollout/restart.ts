import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../config/environment.ts';
import { toOneLine } from '../terminal/table.ts';
import { fillCommand } from './fill-command.ts';
import type { ReplicaView, RolloutGateways } from './gateways.ts';
import { RolloutStop } from './stop.ts';

const ASK_EVERY_MS = 1_000;
/** An engine that is killed and starts again at once is away for this long at least. */
const WATCH_EVERY_MS = 200;

/** Runs the command for a replica. Throws a RolloutStop if it fails, takes too long, or the signal aborts. */
export async function runCommand(
  template: string,
  { name, host, url }: ReplicaView,
  {
    env,
    timeoutMs,
    signal,
    onOutput,
  }: {
    readonly env: Environment;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    readonly onOutput: (line: string) => void;
  },
): Promise<void> {
  const { port, protocol } = new URL(url);
  const facts = { name, host, url, port: port || (protocol === 'https:' ? '443' : '80') };
  const command = fillCommand(template, facts);
  const deadline = AbortSignal.timeout(timeoutMs);
  const child = spawn('/bin/sh', ['-c', command], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.any([signal, deadline]),
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => onOutput(toOneLine(line)));
  }
  const problem = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(`could not be run (${error.message})`));
    child.once('close', (code, killedBy) => {
      resolve(code === 0 ? null : killedBy === null ? `ended with ${code}` : `was ended by ${killedBy}`);
    });
  });
  if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; its command was interrupted');
  if (deadline.aborted) throw new RolloutStop('failed', 'is drained; its command takes too long');
  if (problem !== null) throw new RolloutStop('failed', `is drained; its command ${problem}`);
}

/** What waiting for an engine needs. */
interface EngineWait {
  readonly gateways: RolloutGateways;
  readonly hasCompletion: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called when what is wrong changes. */
  readonly onProblem: (problem: string) => void;
}

/** Waits until the engine goes away, as it does when somebody restarts it. */
export async function untilAway(name: string, wait: Omit<EngineWait, 'hasCompletion'>): Promise<void> {
  wait.onProblem('waits for the engine to go away');
  const isAway = async () => (await wait.gateways.probe(name, false)).state === 'away';
  await until(isAway, WATCH_EVERY_MS, wait, 'is drained; its engine was not restarted');
}

/** Waits until the engine answers with its models, and if wanted with a small completion. */
export async function untilReady(name: string, wait: EngineWait): Promise<void> {
  let problem = '';
  const isReady = async () => {
    const { state, problem: found } = await wait.gateways.probe(name, wait.hasCompletion);
    if (state !== 'ready' && found !== problem) wait.onProblem(found);
    problem = found;
    return state === 'ready';
  };
  await until(isReady, ASK_EVERY_MS, wait, () => `is drained; it is not ready: ${problem}`);
}

async function until(
  isMet: () => Promise<boolean>,
  everyMs: number,
  { timeoutMs, signal }: Pick<EngineWait, 'timeoutMs' | 'signal'>,
  problem: string | (() => string),
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await isMet())) {
    if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; the wait for it was interrupted');
    if (performance.now() >= endMs) {
      throw new RolloutStop('failed', typeof problem === 'string' ? problem : problem());
    }
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
}
