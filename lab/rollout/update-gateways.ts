import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { Load, type LoadResult } from '#testkit/load/load.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type Server, startServer } from '#testkit/programs/child.ts';
import { type GatewaySettings, startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import { CONNECT_TIMEOUT, startReplicaSet } from '#testkit/programs/replica-set.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { compareRecords, type RecordComparison } from './records.ts';

const BALANCER_CONFIG = join(ROOT, 'deploy/haproxy/haproxy.cfg');
const REQUESTS_PER_SECOND = 200;

/** The result of the update of two gateways. */
export interface UpdateReport extends LoadResult, RecordComparison {
  /** Of the two gateways that were stopped. 0: nothing was cut and no record was lost. */
  readonly exitCodes: readonly (number | null)[];
}

/** How much an update does. The program uses the defaults; the tests take less. */
interface UpdateSize {
  /** Requests sent after each replacement. Default: 200. */
  readonly requestsAfter?: number;
}

/**
 * Replaces two gateways, one after the other, behind HAProxy with deploy/haproxy/haproxy.cfg, while clients send 200
 * mixed requests per second to HAProxy.
 */
export async function updateGateways({
  requestsAfter = REQUESTS_PER_SECOND,
}: UpdateSize = {}): Promise<UpdateReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-rollout-')));
  const collector = cleanUp.use(await startFakeCollector());
  const replicaSet = cleanUp.use(await startReplicaSet(() => load));
  const settings = await Promise.all(
    ['gateway-1', 'gateway-2'].map(
      async (name): Promise<GatewaySettings & Record<'name' | 'listen', string>> => ({
        name,
        folder: join(folder.path, name),
        listen: `127.0.0.1:${await findFreePort()}`,
        replicas: replicaSet.replicas,
        collectorUrl: collector.url,
        shutdownDelay: '5s',
        connectTimeout: CONNECT_TIMEOUT,
      }),
    ),
  );
  const gateways = await Promise.all(settings.map(startGatewayProcess));
  const balancer = cleanUp.use(await startBalancer(settings.map(({ listen }) => listen)));
  const load = new Load(balancer.url, REQUESTS_PER_SECOND);
  await load.untilEnded(REQUESTS_PER_SECOND);

  const exitCodes: (number | null)[] = [];
  for (const [index, own] of settings.entries()) {
    exitCodes.push((await gateways[index]?.end('SIGTERM')) ?? null);
    const isUp = balancer.child.untilLine((line) => line.includes(`/${own.name} is UP`));
    gateways[index] = await startGatewayProcess(own);
    await isUp;
    await load.untilEnded(requestsAfter);
  }

  const result = await load.stop();
  await Promise.all(gateways.map((gateway) => gateway.end('SIGTERM')));
  return { ...result, ...compareRecords(collector, result.requestIds), exitCodes };
}

/** HAProxy with the configuration that is shipped. */
async function startBalancer([first = '', second = '']: readonly string[]): Promise<Server> {
  const listen = `127.0.0.1:${await findFreePort()}`;
  const env = { PATH: `${process.env.PATH}:/usr/sbin`, LISTEN: listen, GATEWAY_1: first, GATEWAY_2: second };
  return await startServer(
    { file: 'haproxy', args: ['-f', BALANCER_CONFIG], env, isIsolated: true },
    { url: `http://${listen}`, path: '/healthz' },
    { stdout: 'lines' },
  );
}
