import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createResolver } from '#replicas/discovery';
import { Load, type LoadResult } from '#testkit/load/load.ts';
import { ADMIN_TOKEN, startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import {
  CONNECT_TIMEOUT,
  type ReplicaSet,
  type RolloutSize,
  startReplicaSet,
} from '#testkit/programs/replica-set.ts';
import { runRollout } from '#testkit/programs/rollout-command.ts';
import { srvRecord, startDnsServer } from '#testkit/servers/dns-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const REQUESTS_PER_SECOND = 100;

/** No collector listens here. */
const NO_COLLECTOR = 'http://127.0.0.1:9';

/** The result of a rollout. */
export interface CaseReport
  extends Pick<LoadResult, 'requests' | 'failures'>,
    Pick<ReplicaSet, 'reachedWhileDrained' | 'cut' | 'restarted'> {
  /** Of `gateway rollout`. */
  readonly exitCode: number;
}

/**
 * Rolls the pods behind an SRV name. A pod leaves the name when it is stopped, and returns half a second after its
 * restart is complete. The gateway resolves the name every second, so it does not know the pod when the pod is to be
 * undrained.
 */
export async function rollService({
  tell,
  ...size
}: Pick<RolloutSize, 'requestsPerPhase' | 'tell'> = {}): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await createFolder());
  const hosts = ['127.0.0.11', '127.0.0.12', '127.0.0.13'];
  const absent = new Set<string>();
  const answer = () => dns.answer(toRecords(replicaSet, absent));
  const replicaSet: ReplicaSet = cleanUp.use(
    await startReplicaSet(() => load, {
      ...size,
      hosts,
      onRestart: (name) => {
        absent.add(name);
        answer();
      },
      onRestarted: (name) => {
        setTimeout(() => {
          absent.delete(name);
          answer();
        }, 500);
      },
    }),
  );
  const dns = cleanUp.use(await startDnsServer(toRecords(replicaSet, absent)));
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
  return await rollUnder(load, replicaSet, () =>
    runRollout({ folder: folder.path, adminUrl: gateway.adminUrl, replicaSet, tell }),
  );
}

const SERVICE = '_http._tcp.vllm.llm.test';

function toRecords({ replicas }: ReplicaSet, absent: ReadonlySet<string>) {
  return replicas
    .filter(({ name }) => !absent.has(name))
    .map(({ url }) => new URL(url))
    .map(({ hostname, port }) => srvRecord(SERVICE, hostname, Number(port)));
}

/** Tries to roll the only replica of four that works. */
export async function rollLastReplica(): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await createFolder());
  const replicaSet: ReplicaSet = cleanUp.use(await startReplicaSet(() => load));
  const gateway = cleanUp.use(await startGatewayBefore(replicaSet, folder.path));
  const [last = '', ...others] = replicaSet.replicas.map(({ name }) => name);
  await replicaSet.kill(...others);
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  return await rollUnder(load, replicaSet, () =>
    runRollout({ folder: folder.path, adminUrl: gateway.adminUrl, replicaSet, names: [last] }),
  );
}

/** How long the admin API cannot be reached when each replica has come back. */
export const OUTAGE_MS = 1_500;

/** Rolls replicas while the admin API cannot be reached at the time of each undrain. */
export async function rollDuringAdminOutages({
  rolled,
  tell,
  ...size
}: RolloutSize = {}): Promise<CaseReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await createFolder());
  const replicaSet: ReplicaSet = cleanUp.use(
    await startReplicaSet(() => load, {
      ...size,
      onRestarted: async () => {
        await proxy.close();
        void sleep(OUTAGE_MS).then(() => proxy.open());
      },
    }),
  );
  const gateway = cleanUp.use(await startGatewayBefore(replicaSet, folder.path));
  const proxy = cleanUp.use(await startTcpProxy(gateway.adminUrl));
  const load = new Load(gateway.url, REQUESTS_PER_SECOND);
  return await rollUnder(load, replicaSet, () =>
    runRollout({ folder: folder.path, adminUrl: proxy.url, replicaSet, names: rolled, tell }),
  );
}

const createFolder = () => mkdtempDisposable(join(tmpdir(), 'spangate-rollout-'));

function startGatewayBefore({ replicas }: ReplicaSet, folder: string) {
  return startGatewayProcess({
    folder,
    replicas,
    collectorUrl: NO_COLLECTOR,
    connectTimeout: CONNECT_TIMEOUT,
  });
}

async function rollUnder(
  load: Load,
  replicaSet: ReplicaSet,
  roll: () => Promise<number>,
): Promise<CaseReport> {
  await load.untilEnded(REQUESTS_PER_SECOND);
  const exitCode = await roll();
  await load.untilEnded(REQUESTS_PER_SECOND);
  const { requests, failures } = await load.stop();
  const { reachedWhileDrained, cut, restarted } = replicaSet;
  return { exitCode, requests, failures, reachedWhileDrained, cut, restarted };
}

/** A TCP proxy that refuses connections while it is closed. */
interface TcpProxy extends AsyncDisposable {
  readonly url: string;
  open(): Promise<void>;
  close(): Promise<void>;
}

async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const upstream = connect({ host: hostname, port: Number(port) });
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on('error', () => undefined).once('close', () => sockets.delete(each));
    }
    socket.pipe(upstream).pipe(socket);
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
