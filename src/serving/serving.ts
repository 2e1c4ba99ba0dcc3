import { waitAtMost } from '#otel/clock.ts';
import type { RecordConsumer } from '#otel/queue/record-consumer.ts';
import { startRecorder } from '#otel/span/start-recorder.ts';
import type { Config } from '../config/config.ts';
import { DeadlineClock, toTickMs } from '../http/deadline-clock.ts';
import { HttpServer } from '../http/http-server.ts';
import { allocateLimit, type LimitMemory, SharedLimit } from '../http/shared-limit.ts';
import { SharedReads } from '../http/shared-reads.ts';
import { ReplicaLog, type ReplicaLogTarget } from '../proxy/attempt/replica-log.ts';
import { logDefect } from '../proxy/defect.ts';
import { createProxy } from '../proxy/handle-request.ts';
import type { ProxyCollaborators } from '../proxy/proxy-context.ts';
import { createBodyInspector } from '../proxy/request/body-inspector.ts';
import { ReplicaPool } from '../replicas/data/pool.ts';
import type { PoolSnapshot } from '../replicas/pool-snapshot.ts';
import { allocateSharedState, SharedState, type SharedStateMemory } from '../replicas/shared/shared-state.ts';
import {
  toClientConnectionSettings,
  toPoolSettings,
  toProxySettings,
  toRecorderSettings,
} from './settings.ts';

/** What all data planes of a gateway have in common memory. */
export interface ServingMemory {
  readonly replicas: SharedStateMemory;
  /** Bytes of request bodies. */
  readonly buffered: LimitMemory;
  /** Client connections. */
  readonly connections: LimitMemory;
}

/** Reserves the memory that so many workers share. */
export function allocateServingMemory(
  workerCount: number,
  { bufferedBytes, connections }: Config['limits'],
): ServingMemory {
  return {
    replicas: allocateSharedState(workerCount),
    buffered: allocateLimit(workerCount, bufferedBytes),
    connections: allocateLimit(workerCount, connections),
  };
}

/** What a data plane is told before it starts. Plain data: it can go to another thread. */
export interface ServingSettings {
  readonly config: Config;
  /** The salt of the prefix hashes. */
  readonly salt: Uint8Array;
  /** Which worker this is, from 0: its row in shared memory. */
  readonly worker: number;
  readonly memory: ServingMemory;
}

/** Where a data plane reports. A pino logger fits. */
export type ServingLog = ProxyCollaborators['log'] & ReplicaLogTarget;

/** Whom a data plane works with. */
export interface ServingCollaborators {
  readonly consumer: RecordConsumer;
  readonly log: ServingLog;
}

/** Where clients connect. `reusePort`: together with others who say so. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly reusePort?: boolean;
}

/** The data plane: what serves clients. It takes no decision of its own about which replicas there are. */
export interface Serving {
  /** Starts listening and returns the port; rejects with the system's error. */
  listen(address: ListenAddress): Promise<number>;
  /** Takes over which replicas there are and what they serve; resolves once no lease is given by an older one. */
  apply(topology: PoolSnapshot): Promise<void>;
  /** Takes over what a reload can change; resolves once no request begins with anything older. */
  configure(config: Config): Promise<void>;
  /**
   * Resolves when everything that was under way in the present tick of whoever serves is over. Returns the numbers,
   * from 1, of workers that did not answer in time.
   */
  confirm(): Promise<readonly number[]>;
  /** Resolves when the records of all requests that have ended up to now are made and counted. */
  settleRecords(): Promise<void>;
  /** From now on /healthz answers 503, and connections close with the next response that begins on them. */
  startClosing(): void;
  /** Stops accepting, lets requests in flight finish for so long, and cuts the others; returns how many those are. */
  finish(graceMs: number): Promise<number>;
  /** Lets go of all connections and threads. */
  close(): Promise<void>;
}

/** How long a client whose request was cut has to read that it was. */
export const LAST_WORDS_MS = 500;

/** Creates the data plane of the present thread. Before `apply` it knows no replica. */
export function createServing(settings: ServingSettings, collaborators: ServingCollaborators): Serving {
  const { config, salt, worker, memory } = settings;
  const { consumer, log } = collaborators;
  const recorder = startRecorder(toRecorderSettings(config), { consumer, log });
  const shared = new SharedState(memory.replicas);
  const clock = new DeadlineClock(tickOf(config));
  const onDefect = (error: unknown) => logDefect(error, log);
  const pool = new ReplicaPool(toPoolSettings(config), {
    ...{ shared, worker, clock, log, onDefect },
    sharedReads: new SharedReads(),
  });
  const inspector = createBodyInspector({ salt: Buffer.from(salt), ...config.prefixHash });
  const proxy = createProxy(toProxySettings(config), {
    ...{ pool, telemetry: recorder, inspector, log },
    bodyBudget: new SharedLimit(memory.buffered, worker),
    replicaLog: new ReplicaLog(log),
  });
  const server = new HttpServer(toClientConnectionSettings(config), {
    ...{ clock, handle: proxy.handle, onDefect },
    connections: new SharedLimit(memory.connections, worker),
    onTooMany: logSometimes(() => log.warn({}, 'limits.connections reached: new connections are closed')),
  });

  /** A client that does not read cannot be told; its connection is closed, and then it has ended as well. */
  async function endCut(): Promise<void> {
    await waitAtMost(LAST_WORDS_MS, proxy.untilIdle());
    server.destroyConnections();
    await proxy.untilIdle();
  }

  return {
    listen: (address) => server.listen(address),
    apply: async (topology) => pool.apply(topology),
    async configure(next) {
      clock.setTick(tickOf(next));
      server.configure(toClientConnectionSettings(next));
      proxy.configure(toProxySettings(next));
      pool.configure(toPoolSettings(next));
    },
    // Nothing else of this thread runs while somebody asks: whatever was decided is written.
    confirm: async () => [],
    settleRecords: async () => proxy.finishRecords(),
    startClosing() {
      proxy.startClosing();
      server.startClosing();
    },
    async finish(graceMs) {
      server.stopAccepting();
      const isIdle = await waitAtMost(
        graceMs,
        proxy.untilIdle().then(() => true),
      );
      const cutRequests = isIdle ? 0 : proxy.cutAll();
      if (cutRequests > 0) await endCut();
      proxy.finishRecords();
      return cutRequests;
    },
    async close() {
      server.stopAccepting();
      server.destroyConnections();
      proxy.finishRecords();
      pool.close();
      await inspector.close();
      await recorder.shutdown();
    },
  };
}

/** How often the deadlines of connections are looked at. */
function tickOf({ timeouts }: Config): number {
  const { clientHeadersMs, clientBodyMs, keepAliveMs, firstByteMs, idleMs, upstreamKeepAliveMs } = timeouts;
  return toTickMs([clientHeadersMs, clientBodyMs, keepAliveMs, firstByteMs, idleMs, upstreamKeepAliveMs]);
}

const SOMETIMES_MS = 60_000;

/** Does something the first time it is called, and then at most once a minute. */
function logSometimes(act: () => void): () => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + SOMETIMES_MS;
    act();
  };
}
