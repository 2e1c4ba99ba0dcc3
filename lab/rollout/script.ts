import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ADMIN_TOKEN } from '../reliability/gateway-process.ts';
import type { Fleet } from './fleet.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Runs deploy/rollout.sh for these replicas against one gateway's admin API; resolves with its exit code. */
export async function runRolloutScript(
  folder: string,
  adminUrl: string,
  fleet: Fleet,
  names: readonly string[] = fleet.replicas.map(({ name }) => name),
): Promise<number> {
  const bin = await writeCommands(folder, fleet.restartUrl);
  const script = spawn(
    join(ROOT, 'deploy/rollout.sh'),
    ['--admin', adminUrl, '--timeout', '1m', ...names, '--', join(bin, 'restart')],
    { stdio: 'inherit', env: { PATH: `${bin}:${process.env.PATH}`, SVC_ADMIN_TOKEN: ADMIN_TOKEN } },
  );
  const [exitCode]: (number | null)[] = await once(script, 'exit');
  return exitCode ?? 1;
}

/** The commands that the script calls: the gateway's own, from this checkout, and one that restarts a replica. */
async function writeCommands(folder: string, restartUrl: string): Promise<string> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  const write = (name: string, command: string) =>
    writeFile(join(bin, name), `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
  await write('gateway', `'${process.execPath}' '${join(ROOT, 'src/main.ts')}' "$@"`);
  await write('restart', `curl -fsS -X POST --max-time 120 "${restartUrl}$1"`);
  return bin;
}
