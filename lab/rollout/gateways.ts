import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { EventLog } from '../../test/support/event-log.ts';
import { startFakeCollector } from '../../test/support/fake-collector.ts';
import { findFreePort } from '../../test/support/free-port.ts';
import {
  createFolder,
  type GatewaySettings,
  removeFolder,
  startGatewayProcess,
} from '../reliability/gateway-process.ts';
import { untilServing } from '../served-process.ts';
import { CONNECT_TIMEOUT, startFleet } from './fleet.ts';
import { Load, type LoadResult } from './load.ts';
import { compareRecords, type RecordComparison } from './records.ts';

const BALANCER_CONFIG = join(import.meta.dirname, '../../deploy/haproxy/haproxy.cfg');
const REQUESTS_PER_SECOND = 200;

/** What the update of two gateways came to. */
export interface UpdateReport extends LoadResult, RecordComparison {
  /** Of the two gateways that were stopped; 0 says that nothing was cut and no record was lost. */
  readonly exitCodes: readonly (number | null)[];
}

/**
 * Replaces two gateways, one after the other, behind HAProxy with deploy/haproxy/haproxy.cfg, while clients send 200
 * mixed requests a second to HAProxy.
 */
export async function updateGateways(): Promise<UpdateReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const collector = cleanUp.use(await startFakeCollector());
  const fleet = cleanUp.use(await startFleet(() => load));
  const settings = await Promise.all(
    ['gateway-1', 'gateway-2'].map(async (name): Promise<GatewaySettings & { readonly name: string }> => {
      const own = join(folder, name);
      await mkdir(own);
      const listen = `127.0.0.1:${await findFreePort()}`;
      const common = {
        replicas: fleet.replicas,
        collectorUrl: collector.url,
        shutdownDelay: '5s',
        connectTimeout: CONNECT_TIMEOUT,
      };
      return { name, folder: own, listen, ...common };
    }),
  );
  const gateways = await Promise.all(settings.map(startGatewayProcess));
  const balancer = cleanUp.use(await startBalancer(settings.map(({ listen = '' }) => listen)));
  const load = new Load(balancer.url, REQUESTS_PER_SECOND);
  await load.untilEnded(REQUESTS_PER_SECOND);

  const exitCodes: (number | null)[] = [];
  for (const [index, own] of settings.entries()) {
    exitCodes.push((await gateways[index]?.end('SIGTERM')) ?? null);
    const isUp = balancer.untilUp(own.name);
    gateways[index] = await startGatewayProcess(own);
    await isUp;
    await load.untilEnded(REQUESTS_PER_SECOND);
  }

  const result = await load.stop();
  await Promise.all(gateways.map((gateway) => gateway.end('SIGTERM')));
  return { ...result, ...compareRecords(collector, result.requestIds), exitCodes };
}

/** HAProxy as it is shipped. */
interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** Resolves when it says from now on that this gateway is up. */
  untilUp(name: string): Promise<void>;
}

async function startBalancer(gateways: readonly string[]): Promise<Balancer> {
  const listen = `127.0.0.1:${await findFreePort()}`;
  const [first = '', second = ''] = gateways;
  const child = spawn('haproxy', ['-f', BALANCER_CONFIG], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: `${process.env.PATH}:/usr/sbin`, LISTEN: listen, GATEWAY_1: first, GATEWAY_2: second },
  });
  await once(child, 'spawn');
  const lines = new EventLog<string>();
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const served = await untilServing(child, `http://${listen}`, '/healthz');
  return {
    url: served.url,
    async untilUp(name) {
      const seen = lines.items.length;
      await lines.until(() => lines.items.slice(seen).some((line) => line.includes(`/${name} is UP`)));
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}
