import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { ADMIN_TOKEN } from './gateway-process.ts';
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

/** Starts `gateway rollout` from this checkout. `lines`: its output is JSON lines, to be read. */
export function startRollout(
  { folder, adminUrls, args }: RolloutCommand,
  output: 'lines' | 'shown' = 'shown',
): Child {
  const isJson = output === 'lines';
  const command = {
    file: process.execPath,
    args: [
      ...[join(ROOT, 'src/main.ts'), 'rollout', ...args, '--state', join(folder, 'rollout.json')],
      ...(args.includes('--resume') ? [] : adminUrls.flatMap((url) => ['--admin', url])),
      ...(isJson ? ['--json'] : []),
    ],
    env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN },
    isIsolated: true,
  };
  return startChild(command, { stdout: output });
}

/** The command that restarts a replica of the set. */
export function toRestartCommand({ restartUrl }: Pick<ReplicaSet, 'restartUrl'>): string {
  return `curl -fsS -X POST --max-time 120 ${restartUrl}{name}`;
}

/** Rolls these replicas without a verdict against the admin API of one gateway; resolves with the exit code. */
export async function runRollout(
  folder: string,
  adminUrl: string,
  replicaSet: ReplicaSet,
  names: readonly string[] = replicaSet.replicas.map(({ name }) => name),
): Promise<number> {
  const options = ['--ramp', '0s', '--verdict', 'off', '--timeout', '1m', '--restart-timeout', '3m'];
  const args = [...names, ...options, '--exec', toRestartCommand(replicaSet)];
  await using rollout = startRollout({ folder, adminUrls: [adminUrl], args });
  return (await rollout.exited) ?? 1;
}
