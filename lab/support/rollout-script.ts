import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { ADMIN_TOKEN } from './gateway-process.ts';
import type { ReplicaSet } from './replica-set.ts';
import { ROOT } from './results.ts';

/** Runs deploy/rollout.sh for these replicas against the admin API of one gateway; resolves with its exit code. */
export async function runRolloutScript(
  folder: string,
  adminUrl: string,
  replicaSet: ReplicaSet,
  names: readonly string[] = replicaSet.replicas.map(({ name }) => name),
): Promise<number> {
  const bin = await writeCommands(folder, replicaSet.restartUrl);
  const command = {
    file: join(ROOT, 'deploy/rollout.sh'),
    args: ['--admin', adminUrl, '--timeout', '1m', ...names, '--', join(bin, 'restart')],
    env: { PATH: `${bin}:${process.env.PATH}`, SVC_ADMIN_TOKEN: ADMIN_TOKEN },
    isIsolated: true,
  };
  await using script = startChild(command, { stdout: 'shown' });
  return (await script.exited) ?? 1;
}

/** The commands that the script calls: `gateway`, from this checkout, and `restart`, which restarts a replica. */
async function writeCommands(folder: string, restartUrl: string): Promise<string> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  const write = (name: string, command: string) =>
    writeFile(join(bin, name), `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
  await write('gateway', `'${process.execPath}' '${join(ROOT, 'src/main.ts')}' "$@"`);
  await write('restart', `curl -fsS -X POST --max-time 120 "${restartUrl}$1"`);
  return bin;
}
