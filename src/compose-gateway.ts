import type { Server } from 'node:http';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import { toShownAddress } from '#otel/export/collector-advice.ts';
import type { ModelState, ReplicaState } from '#otel/metrics/replica-metrics.ts';
import { type Metrics, startMetrics } from '#otel/metrics/start-metrics.ts';
import { RecentRecords } from '#otel/queue/recent-records.ts';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import { startTelemetry, type Telemetry } from '#otel/start-telemetry.ts';
import { AdminAccess } from './admin/admin-access.ts';
import type { ReloadOutcome } from './admin/admin-collaborators.ts';
import { configureAdminListener, createAdminListener, useAdminTls } from './admin/admin-listener.ts';
import { type RunningFigures, startLiveFigures } from './admin/dashboard/live-figures.ts';
import { IdleWatcher } from './admin/drains/idle-watcher.ts';
import { createAdminHandler } from './admin/handle-admin.ts';
import { roundTo3 } from './admin/shown-record.ts';
import { type Certificates, readCertificates } from './certificates/certificate-files.ts';
import { CertificateWatcher } from './certificates/certificate-watcher.ts';
import { ClientLimitTable } from './client-limits/client-limit-table.ts';
import { LimitRows } from './client-limits/limit-rows.ts';
import { ClientsWatcher } from './clients/clients-watcher.ts';
import { type ClientList, readClients } from './clients/read-clients.ts';
import type { Config } from './config/config.ts';
import type { AdminTokens } from './config/secrets.ts';
import { type Fleet, openFleet } from './fleet/fleet.ts';
import { FleetLog } from './fleet/fleet-log.ts';
import { createMembershipFile } from './fleet/membership-file.ts';
import { createRedisStore } from './fleet/redis-store.ts';
import { readLimit } from './http/shared-limit.ts';
import { createInTurn } from './in-turn.ts';
import { loadSalt } from './proxy/record/salt.ts';
import { createViaName } from './proxy/request-loop.ts';
import { type ConfigSource, createReload } from './reload-config.ts';
import { type DiscoverySettings, ReplicaDiscovery } from './replicas/control/discovery/replica-discovery.ts';
import { createResolver, type Resolver } from './replicas/control/discovery/resolver.ts';
import { createDrainFile } from './replicas/control/drain-file.ts';
import { Drains } from './replicas/control/drains.ts';
import { HealthChecker } from './replicas/control/health-checker.ts';
import { type ModelAvailability, toModelAvailabilities } from './replicas/control/model-availability.ts';
import { type RegisteredReplica, ReplicaRegistry } from './replicas/control/registry.ts';
import type { PoolSnapshot } from './replicas/pool-snapshot.ts';
import { SharedState } from './replicas/shared/shared-state.ts';
import { allocateServingMemory, createServing, type Serving } from './serving/serving.ts';
import {
  toAdminListenerSettings,
  toConnectionTimeouts,
  toMetricsSettings,
  toTelemetrySettings,
  toWorkerCount,
} from './serving/settings.ts';
import { type WorkerEnd, WorkerGroup } from './serving/workers/worker-group.ts';
import { orStartError } from './start-error.ts';
import { readVersion } from './version.ts';

/** What a gateway gets from outside, beside its configuration. */
export interface GatewayCollaborators {
  readonly env: {
    /** The bearer token that allows every call of the admin API. Unset or empty: there is none. */
    readonly adminToken?: string | null | undefined;
    /** The bearer token that allows every GET of the admin API. Unset or empty: there is none. */
    readonly readToken?: string | null | undefined;
    /** The salt of the prefix hashes. Unset or empty: the salt in state_dir. */
    readonly hashSalt?: string | null | undefined;
  };
  readonly log: Logger;
  /** The id of the process. */
  readonly pid: number;
  /** Reads the configuration again. Unset: a reload is refused. */
  readonly configSource?: ConfigSource | undefined;
  /** Resolves the DNS names of services. Unset: the system's resolver. */
  readonly resolver?: Resolver | undefined;
  /** Called with every finished record after it has entered the queue. */
  readonly onRecord?: ((record: Readonly<RequestRecord>) => void) | undefined;
}

/** The parts of a gateway: one control plane, and the data plane (`serving`) that it directs. */
export interface GatewayParts {
  readonly registry: ReplicaRegistry;
  readonly discovery: ReplicaDiscovery;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  readonly healthChecker: HealthChecker;
  readonly telemetry: Telemetry;
  readonly figures: RunningFigures;
  readonly metrics: Metrics;
  readonly serving: Serving;
  readonly adminListener: Server;
  readonly certificateWatcher: CertificateWatcher;
  readonly clientsWatcher: ClientsWatcher;
  readonly reload: () => Promise<ReloadOutcome>;
  /** The durations of a shutdown, as of the last reload. */
  readonly shutdown: () => Config['shutdown'];
  /** Where records are posted, without credentials; null if they go to files. */
  readonly collector: string | null;
  readonly workerCount: number;
}

/** How long a replica may take to answer a probe that the admin API asks for: longer than a busy engine needs. */
const PROBE_NOW_TIMEOUT_MS = 5_000;

/** How soon new contents of certificate files, and of the file of clients, are used. */
const FILE_INTERVAL_MS = 10_000;

/** What GET /admin/records can return: 500 usual records take 1 MB, 500 with many prefix hashes 2 MB. */
const RECENT_RECORDS = {
  latest: { capacity: 500, capacityBytes: 8 * 1024 ** 2 },
  failures: { capacity: 200, capacityBytes: 4 * 1024 ** 2 },
};

/**
 * The composition root: creates every part of a gateway from its configuration and connects them. No part listens yet;
 * src/gateway.ts starts and stops them. Rejects with a StartError when something that they need is missing.
 */
export async function composeGateway(
  config: Config,
  collaborators: GatewayCollaborators,
): Promise<GatewayParts> {
  const { env, log, pid, resolver = createResolver() } = collaborators;
  const version = await readVersion();
  const startedAt = new Date().toISOString();
  let configLoadedAt = startedAt;
  const { stateDir } = config;
  let configInEffect = config;
  const workerCount = toWorkerCount(config);
  const memory = allocateServingMemory(workerCount, config.limits);
  const shared = new SharedState(memory.replicas);
  const file = createDrainFile(stateDir, log);
  const drains = new Drains({ shared, file, barrier: () => serving.confirm() });
  await orStartError('drain states', drains.restore());
  const registry = new ReplicaRegistry({ shared, drains, timeouts: toConnectionTimeouts(config) });
  const limitRows = new LimitRows(new ClientLimitTable(memory.clientLimits));
  const fleet = await orStartError(
    'fleet',
    openConfiguredFleet(config, { drains, registry, clientLimits: limitRows, log }),
  );
  const certificates = await readCertificates(config);
  const clientList = await readClients(config);
  const salt = await orStartError('hash salt', loadSalt(stateDir, env.hashSalt ?? undefined));
  let knownModels: ReadonlySet<string> = new Set();
  const recentRecords = new RecentRecords(RECENT_RECORDS);
  const telemetry = await orStartError(
    'telemetry',
    startTelemetry(toTelemetrySettings(config), {
      log,
      onRecord(ended) {
        recentRecords.add(ended);
        observeRecord(ended.record);
      },
    }),
  );
  const workerEnds = { ended: 0, hung: 0 };
  const onWorkerEnd = (end: WorkerEnd) => {
    workerEnds.ended += 1;
    if (end === 'hung') workerEnds.hung += 1;
  };
  const metrics = await orStartError(
    'metrics',
    startMetrics(toMetricsSettings(config), {
      isKnownModel: (model) => knownModels.has(model),
      replicas: () => registry.replicas.map(toReplicaState),
      models: () => toModelAvailabilities(registry.replicas).map(toModelState),
      gateway: () => ({
        waiting: { now: registry.waiting, limit: configInEffect.limits.queue },
        connections: readLimit(memory.connections),
        bufferedBytes: readLimit(memory.buffered),
        workerEnds,
      }),
      // A single worker is this thread.
      workers: () => (workerCount === 1 ? [] : serving.eventLoopTimes()),
      eventLoopDelays: memory.eventLoopDelays,
      exportState: () => telemetry.exportState(),
      version,
      ...{ collector: telemetry.collector, resource: telemetry.resource, log },
    }),
  );
  const withRows = (clients: ClientList['clients']) => clients && limitRows.assign(clients);
  const servingSettings = {
    ...{ config, salt, memory, clients: withRows(clientList.clients) },
    ...{ viaName: createViaName(), tls: certificates.listen },
  };
  const serving =
    workerCount === 1
      ? createServing({ ...servingSettings, worker: 0 }, { consumer: telemetry.consumer, log })
      : new WorkerGroup({ ...servingSettings, workerCount }, { telemetry, log, onWorkerEnd });
  const figures = startLiveFigures(() => ({
    stats: telemetry.stats(),
    inflight: registry.all.reduce((sum, { inflight }) => sum + inflight, 0),
    eventLoops: serving.eventLoopTimes(),
  }));
  const observeRecord = recordObserver(() => configInEffect.log, collaborators, [
    figures.add,
    metrics.record,
  ]);
  const discovery = new ReplicaDiscovery(withCertificates(config, certificates), {
    ...{ registry, resolver, log },
    probeHealth: (replica, timeoutMs) => healthChecker.probe(replica, timeoutMs),
    async publish() {
      const { cursors } = await publish(registry, serving);
      // In the form that records have.
      knownModels = new Set(Array.from(cursors.keys(), (model) => toShownName(model)));
    },
  });
  const healthChecker = new HealthChecker(config.health, { registry, table: shared.health, log });
  const onAction = (action: AdminAction) => telemetry.recordAdminAction(action);
  /** Applies the replicas first, because only they can be refused. */
  const apply = async (next: Config, nextTokens: AdminTokens) => {
    const [read, nextClients] = await Promise.all([readCertificates(next), readClients(next)]);
    const changes = await discovery.configure(withCertificates(next, read));
    await certificateWatcher.adopt(read);
    if (next.log.level !== configInEffect.log.level) log.level = next.log.level;
    configureAdminListener(adminListener, toAdminListenerSettings(next));
    await serving.configure(next);
    await clientsWatcher.adopt(nextClients);
    healthChecker.configure(next.health);
    adminAccess.configure(nextTokens);
    configInEffect = next;
    configLoadedAt = new Date().toISOString();
    return changes;
  };
  const inTurn = createInTurn();
  const tokens = { adminToken: env.adminToken || null, readToken: env.readToken || null };
  const adminAccess = new AdminAccess(tokens);
  const reload = createReload(collaborators.configSource, { inTurn, tokens, apply, onAction, log });
  const adminListener = createAdminListener(toAdminListenerSettings(config), certificates.admin, {
    log,
    handle: createAdminHandler(adminAccess, {
      ...{ registry, drains, fleet, recentRecords, log },
      idleWatcher: new IdleWatcher(),
      gatewayName: config.gateway.name,
      metricsText: (format) => metrics.toExposition(format),
      stats: () => telemetry.stats(),
      settleRecords: () => serving.settleRecords(),
      dashboard: {
        figures: () => figures.figures(),
        gateway: () => ({
          ...{ name: config.gateway.name, host: hostname(), pid, version },
          ...{ startedAt, configLoadedAt, workers: workerCount },
        }),
        usage: () => ({
          connections: readLimit(memory.connections),
          bufferedBytes: readLimit(memory.buffered),
        }),
        queueSize: config.export.queueSize,
        traceUrlTemplate: config.trace.urlTemplate,
      },
      refresh: (replica) => discovery.refresh(replica),
      ask: (replica) => healthChecker.askNow(replica, PROBE_NOW_TIMEOUT_MS),
      ...{ reload, onAction },
    }),
  });
  const certificateWatcher = new CertificateWatcher(certificates, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log },
    read: () => readCertificates(configInEffect),
    async useForListeners({ listen, admin }) {
      if (listen !== null) await serving.useTls(listen);
      if (admin !== null) useAdminTls(adminListener, admin);
    },
    async useForReplicas(next) {
      await discovery.configure(withCertificates(configInEffect, next));
    },
  });
  const clientsWatcher = new ClientsWatcher(clientList, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log },
    sources: () => configInEffect,
    use: (clients) => serving.useClients(withRows(clients)),
  });
  const shutdown = () => configInEffect.shutdown;
  return {
    registry,
    discovery,
    fleet,
    healthChecker,
    telemetry,
    figures,
    metrics,
    serving,
    adminListener,
    certificateWatcher,
    clientsWatcher,
    reload,
    shutdown,
    collector: telemetry.collector === undefined ? null : toShownAddress(telemetry.collector),
    workerCount,
  };
}

/** The replicas of a configuration, with the contents of their certificate files. */
function withCertificates(config: Config, { replicas, services }: Certificates): DiscoverySettings {
  return { ...config, replicas, services };
}

async function openConfiguredFleet(
  { gateway, fleet, stateDir }: Config,
  {
    drains,
    registry,
    clientLimits,
    log,
  }: { drains: Drains; registry: ReplicaRegistry; clientLimits: LimitRows; log: Logger },
): Promise<Fleet | null> {
  if (fleet === null) return null;
  return await openFleet(gateway.name, {
    store: createRedisStore(fleet),
    file: createMembershipFile(stateDir, log),
    drains,
    inflight: () => registry.inflightByName(),
    clientLimits,
    log: new FleetLog(log),
  });
}

function toReplicaState(replica: RegisteredReplica): ReplicaState {
  const { name, inflight, config, drain, health, reachability } = replica;
  return {
    ...{ name, inflight, maxInflight: config.maxInflight },
    drained: drain.drained,
    failing: health?.state === 'failing',
    up: reachability.state === 'unknown' ? null : reachability.state === 'reachable',
  };
}

/** In the form that records have. */
function toModelState({ model, ...counts }: ModelAvailability): ModelState {
  return { name: toShownName(model), ...counts };
}

/**
 * Sends the registry's current snapshot to the data plane. Resolves, with that snapshot, when nothing can be written
 * to a removed replica any more.
 */
async function publish(registry: ReplicaRegistry, serving: Serving): Promise<PoolSnapshot> {
  const snapshot = registry.nextSnapshot();
  await serving.apply(snapshot);
  registry.noteApplied(snapshot.version);
  await serving.confirm();
  return snapshot;
}

/** Passes each record to the counters, to `onRecord`, and to the access log if that is on. */
function recordObserver(
  logSettings: () => Config['log'],
  { log, onRecord }: GatewayCollaborators,
  counts: readonly ((record: Readonly<RequestRecord>) => void)[],
): (record: Readonly<RequestRecord>) => void {
  const observe = (record: Readonly<RequestRecord>) => {
    for (const count of counts) count(record);
    onRecord?.(record);
    if (logSettings().requests) log.info(toAccessLogFields(record), 'request');
  };
  return (record) => {
    try {
      observe(record);
    } catch (error) {
      // A defect in an observer costs no request and no record. Its message is not logged: it may quote a request.
      log.error({ error: error instanceof Error ? error.name : typeof error }, 'record handling failed');
    }
  };
}

function toAccessLogFields(record: Readonly<RequestRecord>): object {
  const { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, e2e_ms } = record;
  // Microseconds; the record has all digits.
  const duration = { e2e_ms: roundTo3(e2e_ms) };
  return { request_id, trace_id, endpoint, replica, model, tenant, status, error_type, ...duration };
}
