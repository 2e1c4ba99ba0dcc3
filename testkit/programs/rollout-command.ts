import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { ADMIN_TOKEN } from './gateway-process.ts';
import type { Tell } from './progress.ts';
import type { ReplicaSet } from './replica-set.ts';
import { ROOT } from './results.ts';

/** A rollout as a lab starts it. */
interface RolloutCommand {
  /** Where its state is kept. */
  readonly folder: string;
  readonly adminUrls: readonly string[];
  /** Names of replicas, and options. */
  readonly args: readonly string[];
}

/** Starts `gateway rollout` from this checkout. Its output is JSON lines. */
export function startRollout({ folder, adminUrls, args }: RolloutCommand): Child {
  const command = {
    file: process.execPath,
    args: [
      ...[join(ROOT, 'src/main.ts'), 'rollout', ...args, '--state', join(folder, 'rollout.json')],
      ...(args.includes('--resume') ? [] : adminUrls.flatMap((url) => ['--admin', url])),
      '--json',
    ],
    env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN },
    isIsolated: true,
  };
  return startChild(command, { stdout: 'lines' });
}

/** The command that restarts a replica of the set. */
export function toRestartCommand({ restartUrl }: Pick<ReplicaSet, 'restartUrl'>): string {
  return `curl -fsS -X POST --max-time 120 ${restartUrl}{name}`;
}

/** A line of `gateway rollout --json` about a replica. */
export interface RolloutLine {
  readonly replica: string;
  readonly phase: string;
  readonly text: string;
  /** RFC 3339. */
  readonly time: string;
}

/** The lines about replicas, as they come, until the rollout has ended. */
export async function* readRolloutLines(rollout: Child): AsyncGenerator<RolloutLine> {
  for (;;) {
    const line = await rollout.nextLine().catch(() => null);
    if (line === null) return;
    const { event, ...rest } = JSON.parse(line);
    if (event === 'replica') yield rest;
  }
}

/** How a rollout without a verdict is carried out. */
interface PlainRollout {
  readonly folder: string;
  readonly adminUrl: string;
  readonly replicaSet: ReplicaSet;
  /** Default: all of the set. */
  readonly names?: readonly string[] | undefined;
  readonly tell?: Tell | undefined;
}

/** Rolls these replicas without a verdict against the admin API of one gateway; resolves with the exit code. */
export async function runRollout({
  folder,
  adminUrl,
  replicaSet,
  names = replicaSet.replicas.map(({ name }) => name),
  tell = () => undefined,
}: PlainRollout): Promise<number> {
  const options = ['--ramp', '0s', '--verdict', 'off', '--timeout', '1m', '--restart-timeout', '3m'];
  const args = [...names, ...options, '--exec', toRestartCommand(replicaSet)];
  await using rollout = startRollout({ folder, adminUrls: [adminUrl], args });
  for await (const { replica, text } of readRolloutLines(rollout)) tell(`${replica} ${text}`);
  return (await rollout.exited) ?? 1;
}
