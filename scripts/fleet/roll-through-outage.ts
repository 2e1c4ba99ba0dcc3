import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedisServer } from '../../test/support/redis-server.ts';
import {
  createFolder,
  type GatewayProcess,
  removeFolder,
  startGatewayProcess,
} from '../reliability/gateway-process.ts';
import { CONNECT_TIMEOUT, startFleet } from '../rollout/fleet.ts';
import { Load } from '../rollout/load.ts';
import { runRolloutScript } from '../rollout/script.ts';
import { type SafetyReport, watchSafety } from './watch-safe.ts';

/** What a rollout came to during which the shared state was lost. */
export interface OutageReport extends SafetyReport {
  /** Of deploy/rollout.sh. */
  readonly exitCode: number;
  readonly restarted: readonly string[];
  readonly requests: number;
  readonly failures: readonly string[];
  readonly reachedWhileDrained: number;
  readonly cut: number;
}

const REQUESTS_PER_SECOND = 100;

/** The store is killed when this replica is restarted, and comes back empty after the time. */
const KILLED_WITH = 'vllm-1';
export const AWAY_MS = 12_000;

/**
 * Rolls four simulated replicas with deploy/rollout.sh behind two gateways that share a Redis server, each under load.
 * The script asks one of the gateways. In the middle Redis is killed, and comes back without what it held.
 */
export async function rollThroughOutage(): Promise<OutageReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const redis = cleanUp.use(await startRedisServer());
  let outage: Promise<void> | null = null;
  const loseStore = async () => {
    await redis.kill();
    await sleep(AWAY_MS);
    await redis.start();
  };
  const replicas = cleanUp.use(
    await startFleet(
      () => ({
        untilEnded: async (more) => void (await Promise.all(loads.map((load) => load.untilEnded(more)))),
      }),
      {
        onRestart: (name) => {
          if (name === KILLED_WITH) outage = loseStore();
        },
      },
    ),
  );
  const gateways: readonly GatewayProcess[] = await Promise.all(
    ['gateway-1', 'gateway-2'].map(async (name) => {
      const own = join(folder, name);
      await mkdir(own);
      const { url: redisUrl } = await redis.openWay();
      return await startGatewayProcess({
        ...{ folder: own, replicas: replicas.replicas, collectorUrl: 'http://127.0.0.1:9' },
        ...{ connectTimeout: CONNECT_TIMEOUT, fleet: { name, redisUrl } },
      });
    }),
  );
  const loads = gateways.map(({ url }) => new Load(url, REQUESTS_PER_SECOND));
  await Promise.all(loads.map((load) => load.untilEnded(REQUESTS_PER_SECOND)));

  const adminUrls = gateways.map(({ adminUrl }) => adminUrl);
  const watch = watchSafety(adminUrls, (name) => replicas.factsOf(name));
  const [adminUrl = ''] = adminUrls;
  const exitCode = await runRolloutScript(folder, adminUrl, replicas);
  await outage;

  await Promise.all(loads.map((load) => load.untilEnded(REQUESTS_PER_SECOND)));
  const safety = await watch.stop();
  const results = await Promise.all(loads.map((load) => load.stop()));
  await Promise.all(gateways.map((gateway) => gateway.end('SIGTERM')));
  const { restarted, reachedWhileDrained, cut } = replicas;
  return {
    ...{ ...safety, exitCode, restarted, reachedWhileDrained, cut },
    requests: results.reduce((sum, { requests }) => sum + requests, 0),
    failures: results.flatMap(({ failures }) => failures),
  };
}
