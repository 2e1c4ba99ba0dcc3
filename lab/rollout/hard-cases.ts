import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createResolver } from '../../src/replicas/control/discovery/resolver.ts';
import { srvRecord, startDnsServer } from '../../test/support/dns-server.ts';
import { startGateway } from '../../test/support/start-gateway.ts';
import {
  ADMIN_TOKEN,
  createFolder,
  removeFolder,
  startGatewayProcess,
} from '../reliability/gateway-process.ts';
import { CONNECT_TIMEOUT, type Fleet, startFleet } from './fleet.ts';
import { Load, type LoadResult } from './load.ts';
import { runRolloutScript } from './script.ts';

const REQUESTS_PER_SECOND = 100;

/** Nobody takes the records here. */
const NO_COLLECTOR = 'http://127.0.0.1:9';

/** What a rollout came to. */
export interface CaseReport
  extends Pick<LoadResult, 'requests' | 'failures'>,
    Pick<Fleet, 'reachedWhileDrained' | 'cut' | 'restarted'> {
  /** Of deploy/rollout.sh. */
  readonly exitCode: number;
}

/**
 * Rolls the pods behind an SRV name. A pod leaves the name when it is stopped, and is in it again half a second after
 * its restart is over: the gateway, which reads the name every second, does not know it when it is to be undrained.
 */
export async function rollService(): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const hosts = ['127.0.0.11', '127.0.0.12', '127.0.0.13'];
  const away = new Set<string>();
  const answer = () => dns.answer(toRecords(fleet, away));
  const fleet: Fleet = cleanUp.use(
    await startFleet(() => load, {
      hosts,
      onRestart: (name) => {
        away.add(name);
        answer();
      },
      onRestarted: (name) => {
        setTimeout(() => {
          away.delete(name);
          answer();
        }, 500);
      },
    }),
  );
  const dns = cleanUp.use(await startDnsServer(toRecords(fleet, away)));
  const gateway = cleanUp.use(
    await startGateway({
      replicas: [],
      services: [{ name: 'vllm', dns: `http://${SERVICE}`, models: ['m'], engine: 'vllm' }],
      resolver: createResolver([dns.address]),
      adminToken: ADMIN_TOKEN,
      config: { discovery: { dns_interval: '1s' }, timeouts: { connect: CONNECT_TIMEOUT } },
    }),
  );
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  return await rollUnder(load, fleet, () => runRolloutScript(folder, gateway.adminUrl, fleet));
}

const SERVICE = '_http._tcp.vllm.llm.test';

function toRecords({ replicas }: Fleet, away: ReadonlySet<string>) {
  return replicas
    .filter(({ name }) => !away.has(name))
    .map(({ url }) => new URL(url))
    .map(({ hostname, port }) => srvRecord(SERVICE, hostname, Number(port)));
}

/** Tries to roll the only replica of four that works. */
export async function rollLastReplica(): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const fleet: Fleet = cleanUp.use(await startFleet(() => load));
  const gateway = await startGatewayProcess({
    ...{ folder, replicas: fleet.replicas, collectorUrl: NO_COLLECTOR },
    connectTimeout: CONNECT_TIMEOUT,
  });
  cleanUp.defer(() => gateway.end('SIGKILL').then(() => undefined));
  const [last, ...others] = fleet.replicas.map(({ name }) => name);
  await fleet.kill(...others);
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  return await rollUnder(load, fleet, () => runRolloutScript(folder, gateway.adminUrl, fleet, [last ?? '']));
}

/** How long the admin API cannot be reached when each replica has come back. */
export const AWAY_MS = 1_500;

/** Rolls replicas while the admin API is away at the time of each undrain. */
export async function rollWhileGatewayIsAway(): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await createFolder();
  cleanUp.defer(() => removeFolder(folder));
  const fleet: Fleet = cleanUp.use(
    await startFleet(() => load, {
      onRestarted: async () => {
        await way.close();
        void sleep(AWAY_MS).then(() => way.open());
      },
    }),
  );
  const gateway = await startGatewayProcess({
    ...{ folder, replicas: fleet.replicas, collectorUrl: NO_COLLECTOR },
    connectTimeout: CONNECT_TIMEOUT,
  });
  cleanUp.defer(() => gateway.end('SIGKILL').then(() => undefined));
  const way = cleanUp.use(await openWay(gateway.adminUrl));
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  return await rollUnder(load, fleet, () => runRolloutScript(folder, way.url, fleet));
}

async function rollUnder(load: Load, fleet: Fleet, roll: () => Promise<number>): Promise<CaseReport> {
  await load.untilEnded(REQUESTS_PER_SECOND);
  const exitCode = await roll();
  await load.untilEnded(REQUESTS_PER_SECOND);
  const { requests, failures } = await load.stop();
  const { reachedWhileDrained, cut, restarted } = fleet;
  return { exitCode, requests, failures, reachedWhileDrained, cut, restarted };
}

/** An address that leads to another one, unless it is closed: then it refuses connections. */
interface Way extends AsyncDisposable {
  readonly url: string;
  open(): Promise<void>;
  close(): Promise<void>;
}

async function openWay(target: string): Promise<Way> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const onward = connect({ host: hostname, port: Number(port) });
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => undefined).once('close', () => sockets.delete(each));
    }
    socket.pipe(onward).pipe(socket);
  });
  const open = async (at: number) => {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
  };
  await open(0);
  const own = (server.address() as AddressInfo).port;
  const close = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { url: `http://127.0.0.1:${own}`, open: () => open(own), close, [Symbol.asyncDispose]: close };
}
