import { startFakeCollector } from '../../test/support/fake-collector.ts';
import { createFolder, removeFolder, startGatewayProcess } from '../reliability/gateway-process.ts';
import { CONNECT_TIMEOUT, type Fleet, startFleet } from './fleet.ts';
import { Load, type LoadResult } from './load.ts';
import { compareRecords, type RecordComparison } from './records.ts';
import { runRolloutScript } from './script.ts';

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

  const exitCode = await runRolloutScript(folder, gateway.adminUrl, fleet);

  await load.untilEnded(REQUESTS_PER_SECOND);
  const result = await load.stop();
  await gateway.end('SIGTERM');
  return {
    ...{ ...result, ...compareRecords(collector, result.requestIds), exitCode },
    ...{ reachedWhileDrained: fleet.reachedWhileDrained, cut: fleet.cut, restarted: fleet.restarted },
  };
}
