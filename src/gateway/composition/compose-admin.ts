import type { Server } from 'node:http';
import { hostname } from 'node:os';
import type { Certificates } from '#access';
import {
  type AdminAccess,
  createAdminHandler,
  createAdminListener,
  createHostCheck,
  type FailedTokens,
  IdleWatcher,
  type ReloadOutcome,
} from '#admin';
import type { Fleet } from '#fleet';
import type { AdminAction } from '#otel/span';
import type { ReplicaControl } from '#replicas/control';
import { readLimit } from '#wire';
import type { ServingMemory } from '../serving/serving-memory.ts';
import { toAdminListenerSettings, toWorkerCount } from '../serving/settings.ts';
import type { DataPlane } from './compose-data-plane.ts';
import type { ConfigInEffect } from './config-in-effect.ts';
import type { GatewayCollaborators } from './gateway-collaborators.ts';

interface AdminSurroundings extends GatewayCollaborators {
  readonly replicas: ReplicaControl;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  readonly dataPlane: DataPlane;
  readonly certificates: Certificates;
  readonly memory: ServingMemory;
  readonly version: string;
  readonly access: AdminAccess;
  readonly failedTokens: FailedTokens;
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  readonly onAction: (action: AdminAction) => void;
}

/** Composes the admin API and the dashboard. The listener does not listen yet. */
export function composeAdmin(inEffect: ConfigInEffect, surroundings: AdminSurroundings): Server {
  const { config } = inEffect;
  const { replicas, fleet, dataPlane, certificates, memory, access, failedTokens, log, pid } = surroundings;
  const { version, reload, onAction } = surroundings;
  const { registry, drains } = replicas;
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
      sources: () => replicas.sources,
      idleWatcher: new IdleWatcher(),
      gatewayName: config.gateway.name,
      instanceId: telemetry.instanceId,
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
        traceUrlTemplate: () => inEffect.config.trace.urlTemplate,
      },
      refresh: (replica) => replicas.refresh(replica),
      probeEngine: (replica, hasCompletion) => replicas.probeEngine(replica, hasCompletion),
      observations,
      routingPolicy: () => inEffect.config.routing.policy,
      ask: (replica) => replicas.ask(replica),
      ...{ reload, onAction },
    },
  );
  return createAdminListener(toAdminListenerSettings(config), certificates.admin, { log, handle });
}
