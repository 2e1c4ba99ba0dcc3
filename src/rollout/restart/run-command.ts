import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Signals } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import type { Environment } from '#config/secrets';
import type { ReplicaView } from '../gateways/replica-view.ts';
import { RolloutStop } from '../stop.ts';
import { fillCommand, findUnfitFact, toCommandFacts, toPositionals, toVariables } from './fill-command.ts';
import { until } from './until.ts';

/** The process group of a command, on the machine where it runs. */
export interface CommandGroup {
  readonly host: string;
  readonly pid: number;
}

/** How long a command may take to end after SIGTERM. */
const TERM_MS = 5_000;
/** How long output may come that a command has left behind, such as that of a background process. */
const OUTPUT_MS = 1_000;
const LOOK_EVERY_MS = 250;

/**
 * Runs the command, its first argument, with the others, when a line comes on descriptor 3. If this process is killed
 * before the group is stored, the end of that pipe comes instead, and nothing runs that nobody knows of.
 */
const WHEN_STORED = 'read -r _ <&3 && exec 3<&- && exec /bin/sh -c "$@"';

/** What a command is run with. */
interface CommandRun {
  readonly env: Environment;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly sendToGroup: Signals['sendToGroup'];
  readonly onOutput: (line: string) => void;
  /** Resolves when the group is stored, so that another run knows of it after a crash. */
  readonly onStart: (group: CommandGroup) => Promise<void>;
}

/**
 * Runs the command for a replica, in a process group of its own without a terminal. Throws a RolloutStop if it fails,
 * takes too long, or the signal aborts: the whole group has ended then.
 */
export async function runCommand(
  template: string,
  replica: ReplicaView,
  { env, timeoutMs, signal, sendToGroup, onOutput, onStart }: CommandRun,
): Promise<void> {
  const unfit = findUnfitFact(replica);
  if (unfit !== null) throw new RolloutStop('failed', `is drained; ${unfit}`);
  const facts = toCommandFacts(replica);
  const args = ['-c', WHEN_STORED, 'sh', fillCommand(template), 'sh', ...toPositionals(facts)];
  const child = spawn('/bin/sh', args, {
    env: { ...env, ...toVariables(facts) },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const [, stdout, stderr, go] = child.stdio;
  for (const stream of [stdout, stderr]) {
    createInterface({ input: stream as Readable }).on('line', (line) => onOutput(toOneLine(line)));
  }
  const closed = new Promise((resolve) => child.once('close', resolve));
  const ended = new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(`could not be run (${error.message})`));
    child.once('exit', (code, killedBy) => {
      resolve(code === 0 ? null : killedBy === null ? `ended with ${code}` : `was ended by ${killedBy}`);
    });
  });
  const deadline = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any([signal, deadline]);
  // Fails if the shell has ended, which `ended` tells.
  const start = (go as Writable).on('error', () => undefined);
  try {
    if (child.pid !== undefined) await onStart({ host: hostname(), pid: child.pid });
    start.end('\n');
  } finally {
    start.end();
  }
  const problem = await Promise.race([ended, untilAborted(stop)]);
  if (problem === ABORTED) {
    await endGroup(child, ended, sendToGroup);
    if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; its command was interrupted');
    throw new RolloutStop('command_failed', 'is drained; its command takes too long');
  }
  await Promise.race([closed, sleep(OUTPUT_MS)]);
  closeOutput(child);
  if (problem !== null) throw new RolloutStop('command_failed', `is drained; its command ${problem}`);
}

/**
 * Waits for the command of an earlier run that was killed: it must not restart the engine while the next one does, or
 * later. Throws a RolloutStop if it takes too long, or the signal aborts.
 */
export async function untilCommandEnded(
  { host, pid }: CommandGroup,
  {
    timeoutMs,
    signal,
    sendToGroup,
    onWait,
  }: Pick<CommandRun, 'timeoutMs' | 'signal' | 'sendToGroup'> & { readonly onWait: () => void },
): Promise<void> {
  const hasEnded = () => host !== hostname() || !sendToGroup(pid, 0);
  if (hasEnded()) return;
  onWait();
  const patience = { everyMs: LOOK_EVERY_MS, timeoutMs, signal, lateKind: 'command_failed' } as const;
  await until(
    hasEnded,
    patience,
    () => `is drained; a command of an earlier run takes too long (pid ${pid})`,
  );
}

const ABORTED = Symbol('aborted');

async function untilAborted(signal: AbortSignal): Promise<typeof ABORTED> {
  if (!signal.aborted) await once(signal, 'abort');
  return ABORTED;
}

/** SIGTERM to all processes of the group, and SIGKILL to those that do not end. */
async function endGroup(
  child: ChildProcess,
  ended: Promise<unknown>,
  sendToGroup: Signals['sendToGroup'],
): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  sendToGroup(pid, 'SIGTERM');
  const endMs = performance.now() + TERM_MS;
  while (sendToGroup(pid, 0) && performance.now() < endMs) await sleep(LOOK_EVERY_MS / 10);
  sendToGroup(pid, 'SIGKILL');
  await ended;
  closeOutput(child);
}

/** What still holds the other ends must not keep this process waiting. */
function closeOutput({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}
