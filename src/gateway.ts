import { access, constants, mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { RequestRecord } from '#otel/request-record.ts';
import { startTelemetry, type Telemetry } from '#otel/start-telemetry.ts';
import { createAdminHandler } from './admin/handle-admin.ts';
import type { Config } from './config/config.ts';
import { createListener, listen, stopAccepting } from './http/listener.ts';
import { type BodyInspector, createBodyInspector } from './proxy/body-inspector.ts';
import { createProxy, type ProxyService } from './proxy/handle-request.ts';
import { ByteBudget } from './proxy/read-body.ts';
import { ReplicaLog } from './proxy/replica-log.ts';
import { loadSalt } from './record/salt.ts';
import { createDrainStore, type DrainStore } from './replicas/drain-store.ts';
import { createModelDiscovery } from './replicas/model-discovery.ts';
import { ReplicaPool } from './replicas/pool.ts';
import { Replica } from './replicas/replica.ts';
import { StartError } from './start-error.ts';

export interface GatewayCollaborators {
  readonly env: {
    /** The admin API's bearer token; unset or empty: it refuses every call. */
    readonly adminToken?: string | undefined;
    /** The salt of the prefix hashes; unset or empty: the one in state_dir. */
    readonly hashSalt?: string | undefined;
  };
  readonly log: Logger;
  /** Called with every finished record, after it entered the queue. */
  readonly onRecord?: ((record: Readonly<RequestRecord>) => void) | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What a shutdown had to give up. */
export interface CloseResult {
  readonly cutRequests: number;
  readonly undeliveredRecords: number;
}

export interface Gateway {
  /** Rejects with a StartError, whose message is one line for the operator. Port 0 picks a free one. */
  start(): Promise<{ readonly listen: Address; readonly adminListen: Address }>;
  /** The whole shutdown: delay, grace for requests in flight, flush of records. Idempotent. */
  close(): Promise<CloseResult>;
}

/** The parts that run once the gateway has started. */
interface Running {
  readonly proxy: ProxyService;
  readonly inspector: BodyInspector;
  readonly telemetry: Telemetry;
  readonly listener: Server;
  readonly adminListener: Server;
  readonly stopDiscovery: () => void;
}

/** How long a client whose request was cut has to read that it was. */
const LAST_WORDS_MS = 500;

/** How long a start waits for replicas to tell their models. */
const DISCOVERY_MS = 2_000;

/** Composes a gateway from its configuration. Nothing runs before `start`. */
export function createGateway(config: Config, collaborators: GatewayCollaborators): Gateway {
  const pool = new ReplicaPool(config.replicas.map((replica) => new Replica(replica, config.timeouts)));
  let running: Running | null = null;
  let closing: Promise<CloseResult> | null = null;

  async function startAll(): Promise<{ readonly listen: Address; readonly adminListen: Address }> {
    const drains = createDrainStore(config.stateDir, pool);
    await prepareState(config.stateDir, drains);
    const salt = await orStartError('hash salt', loadSalt(config.stateDir, collaborators.env.hashSalt));
    const telemetry = await orStartError(
      'telemetry',
      startTelemetry(toTelemetrySettings(config), collaborators),
    );
    const inspector = createBodyInspector({ salt, ...config.prefixHash });
    const proxy = createConfiguredProxy(config, collaborators, { pool, telemetry, inspector });
    const discovery = createModelDiscovery(pool, { timeoutMs: DISCOVERY_MS });
    const listener = createListener(toListenerSettings(config), proxy.handle);
    const adminListener = createListener(
      toListenerSettings(config),
      createAdminHandler(collaborators.env.adminToken, {
        pool,
        drains,
        stats: () => telemetry.stats(),
        onAction: (action) => telemetry.recordAdminAction(action),
        log: collaborators.log,
      }),
    );
    running = { proxy, inspector, telemetry, listener, adminListener, stopDiscovery: () => discovery.stop() };
    const { listen: address, adminListen } = config.gateway;
    // The admin API first: whoever gets an answer from the gateway can already drain.
    const adminPort = await listenOn(adminListener, adminListen, 'admin_listen');
    await discovery.start();
    const port = await listenOn(listener, address, 'listen');
    return {
      listen: { host: address.host, port },
      adminListen: { host: adminListen.host, port: adminPort },
    };
  }

  return {
    async start() {
      try {
        return await startAll();
      } catch (error) {
        // Whoever gets no gateway gets no connections, timers or sockets either.
        if (running !== null) await closeDown(running, pool, NO_TIME);
        running = null;
        throw error;
      }
    },

    close() {
      closing ??=
        running === null ? Promise.resolve(NOTHING_LOST) : closeDown(running, pool, config.shutdown);
      return closing;
    },
  };
}

const NO_TIME: Config['shutdown'] = { delayMs: 0, graceMs: 0, flushMs: 0 };
const NOTHING_LOST: CloseResult = { cutRequests: 0, undeliveredRecords: 0 };

async function prepareState(stateDir: string, drains: DrainStore): Promise<void> {
  const isWritable = mkdir(stateDir, { recursive: true, mode: 0o700 }).then(() =>
    access(stateDir, constants.R_OK | constants.W_OK | constants.X_OK),
  );
  await orStartError(`state_dir ${stateDir} is not usable`, isWritable);
  await orStartError('drain states', drains.restore());
}

function createConfiguredProxy(
  config: Config,
  collaborators: GatewayCollaborators,
  { pool, telemetry, inspector }: { pool: ReplicaPool; telemetry: Telemetry; inspector: BodyInspector },
): ProxyService {
  return createProxy(
    {
      recordedHeaders: config.headers,
      maxBodyBytes: config.limits.bodyBytes,
      maxEventBytes: config.limits.eventBytes,
      clientBodyMs: config.timeouts.clientBodyMs,
      firstByteMs: config.timeouts.firstByteMs,
      idleMs: config.timeouts.idleMs,
    },
    {
      pool,
      telemetry,
      inspector,
      bodyBudget: new ByteBudget(config.limits.bufferedBytes),
      log: collaborators.log,
      replicaLog: new ReplicaLog(collaborators.log),
      onRecord: recordObserver(config, collaborators),
    },
  );
}

/** Tells of each record: to whoever asked for them, and to the access log if it is on. */
function recordObserver(
  config: Config,
  { log, onRecord }: GatewayCollaborators,
): (record: Readonly<RequestRecord>) => void {
  return (record) => {
    onRecord?.(record);
    if (config.log.requests) log.info(toAccessLogFields(record), 'request');
  };
}

function toAccessLogFields(record: Readonly<RequestRecord>): object {
  const { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, e2e_ms } = record;
  return { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, e2e_ms };
}

function toTelemetrySettings({ export: to, trace, stateDir }: Config) {
  return {
    sink:
      to.to === 'file'
        ? { to: 'file' as const, files: { directory: stateDir, ...to.file } }
        : { to: 'otlp' as const, endpoint: to.endpoint },
    spoolDirectory: join(stateDir, 'spool'),
    queue: { capacity: to.queueSize, capacityBytes: to.queueBytes },
    batchSize: to.batchSize,
    intervalMs: to.intervalMs,
    retry: to.retry,
    incoming: trace.incoming,
    attemptSpans: trace.attemptSpans,
  };
}

function toListenerSettings({ limits, timeouts }: Config) {
  return {
    maxHeaderBytes: limits.headersBytes,
    maxConnections: limits.connections,
    headersTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
  };
}

async function listenOn(server: Server, address: Address, key: string): Promise<number> {
  return await orStartError(`gateway.${key} ${address.host}:${address.port}`, listen(server, address));
}

/** Awaits; a rejection becomes a StartError of one line: what failed, and the system's reason. */
async function orStartError<T>(what: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw new StartError(`${what}: ${reasonOf(error)}`, error);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return 'the port is already in use';
  if (code === 'EACCES') return 'permission denied';
  return error.message.split('\n', 1)[0] ?? '';
}

/** Delay, stop accepting, grace, cut, flush: the order of a rolling update without a lost request. */
async function closeDown(
  { proxy, inspector, telemetry, listener, adminListener, stopDiscovery }: Running,
  pool: ReplicaPool,
  { delayMs, graceMs, flushMs }: Config['shutdown'],
): Promise<CloseResult> {
  proxy.startClosing();
  stopDiscovery();
  await delay(delayMs);
  stopAccepting(listener);
  const isIdle = await Promise.race([proxy.untilIdle().then(() => true), delay(graceMs).then(() => false)]);
  const cutRequests = isIdle ? 0 : proxy.cutAll();
  if (cutRequests > 0) await endCut(proxy, listener);
  const { undelivered } = await telemetry.shutdown(flushMs);
  listener.closeAllConnections();
  adminListener.close();
  adminListener.closeAllConnections();
  await pool.close();
  await inspector.close();
  return { cutRequests, undeliveredRecords: undelivered };
}

/** A client that does not read cannot be told; its connection is closed, and then it has ended as well. */
async function endCut(proxy: ProxyService, listener: Server): Promise<void> {
  await Promise.race([proxy.untilIdle(), delay(LAST_WORDS_MS)]);
  listener.closeAllConnections();
  await proxy.untilIdle();
}

function delay(ms: number): Promise<void> {
  if (ms === 0) return Promise.resolve();
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
