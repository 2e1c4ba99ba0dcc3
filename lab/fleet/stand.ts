import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type RedisServer, startRedisServer } from '../../test/support/redis-server.ts';
import {
  createFolder,
  type GatewayProcess,
  removeFolder,
  startGatewayProcess,
} from '../reliability/gateway-process.ts';
import { CONNECT_TIMEOUT, type Fleet, startFleet } from '../rollout/fleet.ts';
import { Load, type LoadResult } from '../rollout/load.ts';
import { type SafetyReport, watchSafety } from './watch-safe.ts';

/** Requests per second to each gateway. */
export const REQUESTS_PER_SECOND = 100;

/** How long the second gateway's link to Redis takes, there and back. */
export const LINK_MS = 472;

/** What the clients and the watch saw. */
export interface StandReport extends SafetyReport {
  readonly requests: number;
  readonly failures: readonly string[];
}

/** Four simulated replicas behind two gateways that share a Redis server, each under load, one with a long link. */
export interface Stand extends AsyncDisposable {
  readonly folder: string;
  readonly redis: RedisServer;
  readonly replicas: Fleet;
  readonly gateways: readonly [GatewayProcess, GatewayProcess];
  /** Ends the load and the gateways. */
  finish(): Promise<StandReport>;
}

/** Starts it all; resolves when every part serves under load. `onRestart` is told of each restart of a replica. */
export async function startStand(
  onRestart: (name: string, redis: RedisServer) => void = () => undefined,
): Promise<Stand> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const redis = cleanUp.use(await startRedisServer());
  const loads: Load[] = [];
  const untilEnded = async (more: number) =>
    void (await Promise.all(loads.map((load) => load.untilEnded(more))));
  const replicas = cleanUp.use(
    await startFleet(() => ({ untilEnded }), { onRestart: (name) => onRestart(name, redis) }),
  );
  const start = async (name: string, linkMs: number) => {
    const own = join(folder, name);
    await mkdir(own);
    const way = await redis.openWay();
    way.delayBy(linkMs / 2);
    return await startGatewayProcess({
      ...{ folder: own, replicas: replicas.replicas, collectorUrl: 'http://127.0.0.1:9' },
      ...{ connectTimeout: CONNECT_TIMEOUT, fleet: { name, redisUrl: way.url } },
    });
  };
  const gateways = await Promise.all([start('gateway-1', 0), start('gateway-2', LINK_MS)]);
  loads.push(...gateways.map(({ url }) => new Load(url, REQUESTS_PER_SECOND)));
  await untilEnded(REQUESTS_PER_SECOND);
  const adminUrls = gateways.map(({ adminUrl }) => adminUrl);
  const watch = watchSafety(adminUrls, (name) => replicas.factsOf(name));
  const parts = cleanUp.move();
  return {
    ...{ folder, redis, replicas, gateways },
    async finish() {
      await untilEnded(REQUESTS_PER_SECOND);
      const safety = await watch.stop();
      const results: readonly LoadResult[] = await Promise.all(loads.map((load) => load.stop()));
      await Promise.all(gateways.map((gateway) => gateway.end('SIGTERM')));
      return {
        ...safety,
        requests: results.reduce((sum, { requests }) => sum + requests, 0),
        failures: results.flatMap(({ failures }) => failures),
      };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
