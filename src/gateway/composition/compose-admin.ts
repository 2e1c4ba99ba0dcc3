import { hostname } from 'node:os';
import type { Certificates } from '#access/certificates';
import {
  AdminAccess,
  AdminListener,
  createAdminHandler,
  createHostCheck,
  type FailedTokens,
  IdleWatcher,
  type ReloadOutcome,
} from '#admin';
import type { Fleet } from '#fleet';
import type { RecordedHistory } from '#history';
import type { ReplicaControl } from '#replicas/control';
import type { RolloutBoard } from '#rollout-board';
import { readLimit } from '#shared-memory';
import { toAdminListenerSettings, toGatewayName, toWorkerCount } from '../serving/settings.ts';
import type { DataPlane } from './compose-data-plane.ts';
import type { Composition } from './gateway-collaborators.ts';
import { listenOn } from './listen-on.ts';

interface AdminSurroundings {
  readonly replicas: ReplicaControl;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  readonly dataPlane: DataPlane;
  readonly history: RecordedHistory;
  readonly certificates: Certificates;
  readonly failedTokens: FailedTokens;
  readonly rollouts: RolloutBoard;
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  readonly statementKey: () => string | null;
}

/** Where operators connect. */
export interface AdminApi {
  readonly listener: AdminListener;
  /** As configured; from the start on as it is. */
  port: number;
}

/** Composes the admin API and the dashboard. */
export function composeAdmin(
  { inEffect, collaborators, parts, events, board, memory, version }: Composition,
  {
    replicas,
    fleet,
    dataPlane,
    history,
    certificates,
    failedTokens,
    rollouts,
    reload,
    statementKey,
  }: AdminSurroundings,
): AdminApi {
  const { config } = inEffect;
  const { secrets, log, pid } = collaborators;
  const access = new AdminAccess(secrets.tokens);
  const { registry, drains } = replicas;
  const { serving, telemetry, metrics, figures, recentRecords, judge } = dataPlane;
  const identity = {
    name: toGatewayName(config),
    host: hostname(),
    pid,
    version,
    startedAt: inEffect.loadedAt,
    workers: toWorkerCount(config),
  };
  const isHostAllowed = (host: string | undefined) => {
    const { adminListen, adminHosts } = inEffect.config.gateway;
    return createHostCheck({ listenHost: adminListen.host, allowedHosts: adminHosts })(host);
  };
  const handle = createAdminHandler(
    { access, failedTokens, isHostAllowed },
    {
      registry,
      conditions: () => board.current,
      drains,
      fleet,
      recentRecords,
      log,
      sources: () => replicas.sources,
      idleWatcher: new IdleWatcher(),
      signIns: access.signIns,
      gatewayName: toGatewayName(config),
      instanceId: telemetry.instanceId,
      rampMs: () => inEffect.config.rollout.rampMs,
      metricsText: (format) => metrics.toExposition(format),
      stats: () => telemetry.stats(),
      history,
      statementKey,
      settleRecords: async () => {
        const { results, silent } = await serving.all.settleRecords();
        // A worker that does not answer may have a request of any time since the start.
        const unknownMs = silent.map(() => performance.now());
        return Math.max(...results, ...unknownMs, replicas.backgroundCounts.oldestMs);
      },
      dashboard: {
        figures: () => figures.figures(),
        gateway: () => ({ ...identity, configLoadedAt: inEffect.loadedAt }),
        usage: () => ({
          connections: readLimit(memory.connections),
          bufferedBytes: readLimit(memory.buffered),
        }),
        queueSize: config.export.queueSize,
        exportTo: config.export.to,
        traceUrlTemplate: () => inEffect.config.trace.urlTemplate,
      },
      refresh: (replica) => replicas.refresh(replica),
      probeEngine: (replica, hasCompletion) => replicas.probeEngine(replica, hasCompletion),
      judge,
      beginTrial: (...trial) => replicas.trials.begin(...trial),
      endTrial: (replica, tokenName) => replicas.trials.end(replica, tokenName),
      shadowShare: () => inEffect.config.shadow.requestsShare,
      rollouts,
      ask: (replica) => replicas.ask(replica),
      reload,
      onAction: (action) => events.emit('action', action),
    },
  );
  const listener = new AdminListener(toAdminListenerSettings(config), certificates.admin, { log, handle });
  const api: AdminApi = { listener, port: config.gateway.adminListen.port };
  parts.add('admin API', {
    async start() {
      api.port = await listenOn((to) => listener.listen(to), config.gateway.adminListen, 'admin_listen');
    },
    stop: () => listener.close(),
  });
  inEffect.onChange(
    async (_, { tokens }) =>
      async () =>
        access.configure(tokens),
  );
  inEffect.onValues((next) => listener.configure(toAdminListenerSettings(next)));
  return api;
}
