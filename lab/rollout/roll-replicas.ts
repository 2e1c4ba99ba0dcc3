import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { Load, type LoadResult } from '#testkit/load/load.ts';
import { startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import {
  CONNECT_TIMEOUT,
  type ReplicaSet,
  type RolloutSize,
  startReplicaSet,
} from '#testkit/programs/replica-set.ts';
import { runRollout } from '#testkit/programs/rollout-command.ts';
import { compareRecords, type RecordComparison } from './records.ts';

const REQUESTS_PER_SECOND = 200;

/** The result of a rollout of four replicas. */
export interface RolloutReport
  extends LoadResult,
    RecordComparison,
    Pick<ReplicaSet, 'reachedWhileDrained' | 'cut' | 'restarted'> {
  /** Of `gateway rollout`. */
  readonly exitCode: number;
}

/**
 * Rolls four simulated replicas with `gateway rollout` behind a gateway process
 * that gets 200 mixed requests per second. `workers`: threads of the gateway.
 */
export async function rollReplicas(workers: number, size: RolloutSize = {}): Promise<RolloutReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-rollout-')));
  const collector = cleanUp.use(await startFakeCollector());
  const replicaSet: ReplicaSet = cleanUp.use(await startReplicaSet(() => load, size));
  const { replicas } = replicaSet;
  const gateway = cleanUp.use(
    await startGatewayProcess({
      folder: folder.path,
      workers,
      replicas,
      collectorUrl: collector.url,
      connectTimeout: CONNECT_TIMEOUT,
    }),
  );
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  await load.untilEnded(REQUESTS_PER_SECOND);

  const exitCode = await runRollout({
    folder: folder.path,
    adminUrl: gateway.adminUrl,
    replicaSet,
    names: size.rolled,
    tell: size.tell,
  });

  await load.untilEnded(REQUESTS_PER_SECOND);
  const result = await load.stop();
  await gateway.end('SIGTERM');
  const { reachedWhileDrained, cut, restarted } = replicaSet;
  return {
    ...result,
    ...compareRecords(collector, result.requestIds),
    exitCode,
    reachedWhileDrained,
    cut,
    restarted,
  };
}
