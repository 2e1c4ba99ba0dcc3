import type { JwtKeys } from '#access/jwt';
import { ClientLimiter, ClientLimitTable } from '#access/limits';
import { atMostOncePerMinute } from '#base';
import type { Config } from '#config';
import { type Log, waitAtMost } from '#otel/base';
import type { RecordConsumer } from '#otel/queue';
import { startRecorder } from '#otel/span';
import { createProxy, logDefect } from '#proxy';
import type { ApiClientEntry } from '#proxy/entry';
import { ReplicaPool } from '#replicas';
import { SharedState } from '#replicas/shared';
import { StoredResponses } from '#replicas/stored-responses';
import { ShadowCopies } from '#shadow';
import { SharedLimit } from '#shared-memory';
import { DeadlineClock, toTickMs } from '#wire';
import { HttpServer, type TlsMaterial } from '#wire/client';
import { SharedReads } from '#wire/upstream';
import {
  type ControlCalls,
  CUT_NOTICE_MS,
  type LifeCalls,
  type PlaneCalls,
  type WorkerCalls,
} from './calls.ts';
import type { CallsOfAll } from './channel.ts';
import { ClientAccess } from './client-access.ts';
import { toProxyPolicy } from './proxy-policy.ts';
import type { ServingMemory } from './serving-memory.ts';
import {
  toClientConnectionSettings,
  toPoolSettings,
  toRecorderSettings,
  toShadowSettings,
} from './settings.ts';

/** The settings of a data plane. Plain data, which can be sent to another thread. */
export interface ServingSettings {
  readonly config: Config;
  /** The salt of the prefix hashes. */
  readonly salt: Uint8Array;
  /** The gateway's name in Via, the same in all workers. */
  readonly viaName: string;
  /** The index of this worker, from 0: its row in shared memory. */
  readonly worker: number;
  readonly memory: ServingMemory;
  /** Who may send requests; null: everyone. */
  readonly clients: readonly ApiClientEntry[] | null;
  /** The keys that verify tokens; null: tokens are not accepted. */
  readonly jwtKeys: JwtKeys | null;
  /** What TLS handshakes of clients use; null: clients connect without encryption. */
  readonly tls: TlsMaterial | null;
  /** Whether it rehearses before it listens. */
  readonly rehearses: boolean;
}

/** What a data plane works with. */
export interface ServingCollaborators {
  readonly consumer: RecordConsumer;
  readonly control: ControlCalls;
  readonly log: Log<'debug' | 'info' | 'warn' | 'error'>;
}

/** How long the event loop of a worker has run callbacks and waited, since its thread started: milliseconds. */
export interface WorkerLoopTime {
  /** The number of the worker, from 1. */
  readonly worker: number;
  readonly activeMs: number;
  readonly idleMs: number;
}

/** The data plane, which serves clients: one worker in this thread, or several in theirs. */
export interface Serving extends LifeCalls {
  readonly all: CallsOfAll<PlaneCalls>;
  /** The times of the workers that run. */
  eventLoopTimes(): readonly WorkerLoopTime[];
}

/** Creates the worker of the current thread. Before `apply` it knows no replica. */
export function createWorker(settings: ServingSettings, collaborators: ServingCollaborators): WorkerCalls {
  const { salt, viaName, worker, memory, tls } = settings;
  let { config } = settings;
  const { consumer, control, log } = collaborators;
  const access = new ClientAccess(settings, { control, log });
  const recorder = startRecorder(toRecorderSettings(config), { consumer, log });
  const shared = new SharedState(memory.replicas);
  const clock = new DeadlineClock(tickOf(config));
  const onDefect = (error: unknown) => logDefect(error, log);
  const pool = new ReplicaPool(toPoolSettings(config), {
    shared,
    worker,
    clock,
    onHealth: control.onHealth,
    onDefect,
    sharedReads: new SharedReads(),
    storedResponses: new StoredResponses(memory.storedResponses),
  });
  const bodyBudget = new SharedLimit(memory.buffered, worker);
  const shadows = new ShadowCopies(toShadowSettings(config), {
    pool,
    bodyBudget,
    onDefect,
    onReport: control.onShadow,
    random: Math.random,
  });
  const proxy = createProxy(toProxyPolicy(config, access, viaName), {
    pool,
    telemetry: recorder,
    prefixHash: { salt: Buffer.from(salt), ...config.prefixHash },
    log,
    bodyBudget,
    sendListener: shadows,
    limiter: new ClientLimiter(new ClientLimitTable(memory.clientLimits), worker),
    followResponse(response) {
      recorder.discardRequestSpan();
      control.onBackground({ ...response, worker });
    },
    tellUsage: control.tellUsage,
    onLoop: atMostOncePerMinute(() =>
      log.warn(
        {},
        'loop refused: a request came back, because the url of a replica leads back to this gateway',
      ),
    ),
  });
  const logHandshake = atMostOncePerMinute((code: string, address: string | undefined) =>
    log.info({ code, client_address: address }, 'TLS handshake failed; logged at most once per minute'),
  );
  const server = new HttpServer(toClientConnectionSettings(config), tls, {
    clock,
    handle: proxy.handle,
    onDefect,
    connections: new SharedLimit(memory.connections, worker),
    onTooMany: atMostOncePerMinute(() => {
      const connections = memory.connections.limit;
      if (connections === config.limits.connections) {
        log.info({}, 'limits.connections reached: new connections are closed');
      } else {
        log.info(
          { connections },
          'no file descriptors for more clients: new connections are closed; raise the limit of open files (ulimit -n, LimitNOFILE)',
        );
      }
    }),
    onHandshakeFailed: logHandshake,
  });

  /** A part of a head is a request that has begun. */
  async function untilIdle(): Promise<void> {
    await server.untilHeadsEnd();
    await proxy.untilIdle();
  }

  /** Closes the connections of clients that do not read the error in time, which ends their requests. */
  async function endCut(): Promise<void> {
    await waitAtMost(CUT_NOTICE_MS, proxy.untilIdle());
    server.destroyConnections();
    await proxy.untilIdle();
  }

  return {
    listen: (address) => server.listen(address),
    apply: async (topology) => pool.apply(topology),
    async configure(next) {
      config = next;
      access.configure(next);
      clock.setTick(tickOf(next));
      server.configure(toClientConnectionSettings(next));
      proxy.configure(toProxyPolicy(next, access, viaName));
      pool.configure(toPoolSettings(next));
      shadows.configure(toShadowSettings(next));
    },
    async useClients(next) {
      access.useClients(next);
      proxy.configure(toProxyPolicy(config, access, viaName));
    },
    useJwtKeys: async (keys) => access.useJwtKeys(keys),
    useTls: async (material) => server.useTls(material),
    // A call in the same thread runs in a tick of its own: earlier ticks are finished.
    confirm: async () => undefined,
    settleRecords: async () => proxy.finishRecords(),
    startClosing() {
      proxy.startClosing();
      server.startClosing();
    },
    async finish(graceMs) {
      server.stopAccepting();
      const isIdle = await waitAtMost(
        graceMs,
        untilIdle().then(() => true),
      );
      // What begins now would be cut when the queue of records has ended.
      server.destroyHeads();
      const cutRequests = isIdle ? 0 : proxy.cutAll();
      if (cutRequests > 0) await endCut();
      shadows.stop();
      proxy.finishRecords();
      return cutRequests;
    },
    async close() {
      server.stopAccepting();
      server.destroyConnections();
      proxy.finishRecords();
      pool.close();
      await proxy.close();
      await recorder.shutdown();
    },
  };
}

/** How often the deadlines of connections are checked. */
function tickOf({ timeouts }: Config): number {
  const { clientHeadersMs, clientBodyMs, keepAliveMs, firstByteMs, idleMs, upstreamKeepAliveMs } = timeouts;
  return toTickMs([clientHeadersMs, clientBodyMs, keepAliveMs, firstByteMs, idleMs, upstreamKeepAliveMs]);
}
