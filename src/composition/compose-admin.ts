import type { Server } from 'node:http';
import { hostname } from 'node:os';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { AdminAccess } from '../admin/access/admin-access.ts';
import type { FailedTokens } from '../admin/access/failed-tokens.ts';
import { createHostCheck } from '../admin/access/host-check.ts';
import type { ReloadOutcome } from '../admin/admin-collaborators.ts';
import { IdleWatcher } from '../admin/drains/idle-watcher.ts';
import { createAdminHandler } from '../admin/handle-admin.ts';
import { createAdminListener } from '../admin/listener/admin-listener.ts';
import type { Certificates } from '../certificates/certificate-files.ts';
import { readLimit } from '../http/shared-limit.ts';
import { probeEngine } from '../replicas/control/engine-probe.ts';
import type { ServingMemory } from '../serving/serving-memory.ts';
import { toAdminListenerSettings, toWorkerCount } from '../serving/settings.ts';
import type { DataPlane } from './compose-data-plane.ts';
import type { ReplicaControl } from './compose-replicas.ts';
import type { ConfigInEffect } from './config-in-effect.ts';
import type { GatewayCollaborators } from './gateway-collaborators.ts';

interface AdminSurroundings extends GatewayCollaborators {
  readonly replicas: ReplicaControl;
  readonly dataPlane: DataPlane;
  readonly certificates: Certificates;
  readonly memory: ServingMemory;
  readonly version: string;
  readonly access: AdminAccess;
  readonly failedTokens: FailedTokens;
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  readonly onAction: (action: AdminAction) => void;
}

/** How long a replica may take to answer a probe that the admin API asks for: longer than a busy engine needs. */
const PROBE_NOW_TIMEOUT_MS = 5_000;

/** An engine that has just started may compile before its first answer. */
const ENGINE_PROBE_TIMEOUT_MS = 10_000;

/** Composes the admin API and the dashboard. The listener does not listen yet. */
export function composeAdmin(inEffect: ConfigInEffect, surroundings: AdminSurroundings): Server {
  const { config } = inEffect;
  const { replicas, dataPlane, certificates, memory, access, failedTokens, log, pid } = surroundings;
  const { version, reload, onAction } = surroundings;
  const { registry, drains, fleet, discovery, healthChecker } = replicas;
  const { serving, telemetry, metrics, figures, recentRecords, observations } = dataPlane;
  const identity = {
    ...{ name: config.gateway.name, host: hostname(), pid, version },
    ...{ startedAt: inEffect.loadedAt, workers: toWorkerCount(config) },
  };
  const isHostAllowed = (host: string | undefined) => {
    const { adminListen, adminHosts } = inEffect.config.gateway;
    return createHostCheck({ listenHost: adminListen.host, allowedHosts: adminHosts })(host);
  };
  const handle = createAdminHandler(
    { access, failedTokens, isHostAllowed },
    {
      ...{ registry, drains, fleet, recentRecords, log },
      sources: () => discovery.sources,
      idleWatcher: new IdleWatcher(),
      gatewayName: config.gateway.name,
      rampMs: () => inEffect.config.rollout.rampMs,
      metricsText: (format) => metrics.toExposition(format),
      stats: () => telemetry.stats(),
      settleRecords: () => serving.settleRecords(),
      dashboard: {
        figures: () => figures.figures(),
        gateway: () => ({ ...identity, configLoadedAt: inEffect.loadedAt }),
        usage: () => ({
          connections: readLimit(memory.connections),
          bufferedBytes: readLimit(memory.buffered),
        }),
        queueSize: config.export.queueSize,
        exportTo: config.export.to,
        traceUrlTemplate: config.trace.urlTemplate,
      },
      refresh: (replica) => discovery.refresh(replica),
      probeEngine: (replica, hasCompletion) =>
        probeEngine(replica, { timeoutMs: ENGINE_PROBE_TIMEOUT_MS, hasCompletion }),
      observations,
      routingPolicy: () => inEffect.config.routing.policy,
      ask: (replica) => healthChecker.askNow(replica, PROBE_NOW_TIMEOUT_MS),
      ...{ reload, onAction },
    },
  );
  return createAdminListener(toAdminListenerSettings(config), certificates.admin, { log, handle });
}
