import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeCollector } from '../../test/support/fake-collector.ts';
import {
  ADMIN_TOKEN,
  createFolder,
  removeFolder,
  startGatewayProcess,
} from '../reliability/gateway-process.ts';
import { CONNECT_TIMEOUT, type Fleet, startFleet } from './fleet.ts';
import { Load, type LoadResult } from './load.ts';
import { compareRecords, type RecordComparison } from './records.ts';

const ROOT = join(import.meta.dirname, '../..');
const REQUESTS_PER_SECOND = 200;

/** What a rollout of four replicas came to. */
export interface RolloutReport
  extends LoadResult,
    RecordComparison,
    Pick<Fleet, 'reachedWhileDrained' | 'cut' | 'restarted'> {
  /** Of deploy/rollout.sh. */
  readonly exitCode: number;
}

/**
 * Rolls four simulated replicas with deploy/rollout.sh, the script of docs/rollouts.md, behind a gateway process
 * that gets 200 mixed requests a second. `workers`: threads of the gateway.
 */
export async function rollReplicas(workers: number): Promise<RolloutReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const collector = cleanUp.use(await startFakeCollector());
  const fleet: Fleet = cleanUp.use(await startFleet(() => load));
  const gateway = await startGatewayProcess({
    ...{ folder, workers, replicas: fleet.replicas, collectorUrl: collector.url },
    connectTimeout: CONNECT_TIMEOUT,
  });
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  await load.untilEnded(REQUESTS_PER_SECOND);

  const bin = await writeCommands(folder, fleet.restartUrl);
  const names = fleet.replicas.map(({ name }) => name);
  const script = spawn(
    join(ROOT, 'deploy/rollout.sh'),
    ['--admin', gateway.adminUrl, '--timeout', '1m', ...names, '--', join(bin, 'restart')],
    { stdio: 'inherit', env: { PATH: `${bin}:${process.env.PATH}`, SVC_ADMIN_TOKEN: ADMIN_TOKEN } },
  );
  const [exitCode]: number[] = await once(script, 'exit');

  await load.untilEnded(REQUESTS_PER_SECOND);
  const result = await load.stop();
  await gateway.end('SIGTERM');
  return {
    ...{ ...result, ...compareRecords(collector, result.requestIds), exitCode: exitCode ?? 1 },
    ...{ reachedWhileDrained: fleet.reachedWhileDrained, cut: fleet.cut, restarted: fleet.restarted },
  };
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
