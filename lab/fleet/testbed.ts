import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Load } from '#testkit/load/load.ts';
import { type GatewayProcess, startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import { CONNECT_TIMEOUT, type ReplicaSet, startReplicaSet } from '#testkit/programs/replica-set.ts';
import { type RedisServer, startRedisServer } from '#testkit/servers/redis-server.ts';
import { type SafetyReport, watchSafety } from './watch-safety.ts';

/** Requests per second to each gateway, by default. */
export const REQUESTS_PER_SECOND = 100;

/** Round-trip time of the second gateway's link to Redis. */
export const LINK_MS = 472;

/** How much load there is. */
export interface TestbedSize {
  /** To each gateway. Default: 100. */
  readonly requestsPerSecond?: number;
}

/** What the clients and the watch saw. */
export interface TestbedReport extends SafetyReport {
  readonly requests: number;
  readonly failures: readonly string[];
}

/** Four simulated replicas behind two gateways under load that share a Redis server; one has a slow link to it. */
export interface Testbed extends AsyncDisposable {
  readonly folder: string;
  readonly redis: RedisServer;
  readonly replicaSet: ReplicaSet;
  readonly gateways: readonly [GatewayProcess, GatewayProcess];
  /** Ends the load and the gateways. */
  finish(): Promise<TestbedReport>;
}

/** Resolves when every part serves under load. `onRestart` is called at each restart of a replica. */
export async function startTestbed(
  { requestsPerSecond = REQUESTS_PER_SECOND }: TestbedSize = {},
  onRestart: (name: string, redis: RedisServer) => void = () => undefined,
): Promise<Testbed> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-fleet-')));
  const redis = cleanUp.use(await startRedisServer());
  const loads: Load[] = [];
  const untilEnded = async (more: number) =>
    void (await Promise.all(loads.map((load) => load.untilEnded(more))));
  const replicaSet = cleanUp.use(
    await startReplicaSet(() => ({ untilEnded }), { onRestart: (name) => onRestart(name, redis) }),
  );
  const start = async (name: string, linkMs: number) => {
    const link = await redis.openLink();
    link.delayBy(linkMs / 2);
    const gateway = await startGatewayProcess({
      folder: join(folder.path, name),
      replicas: replicaSet.replicas,
      collectorUrl: 'http://127.0.0.1:9',
      connectTimeout: CONNECT_TIMEOUT,
      fleet: { name, redisUrl: link.url },
    });
    return cleanUp.use(gateway);
  };
  const gateways = await Promise.all([start('gateway-1', 0), start('gateway-2', LINK_MS)]);
  loads.push(...gateways.map(({ url }) => new Load(url, requestsPerSecond)));
  await untilEnded(requestsPerSecond);
  const adminUrls = gateways.map(({ adminUrl }) => adminUrl);
  const watch = watchSafety(adminUrls, (name) => replicaSet.factsOf(name));
  const parts = cleanUp.move();
  return {
    folder: folder.path,
    redis,
    replicaSet,
    gateways,
    async finish() {
      await untilEnded(requestsPerSecond);
      const safety = await watch.stop();
      const results = await Promise.all(loads.map((load) => load.stop()));
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
