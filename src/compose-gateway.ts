import type { Server } from 'node:http';
import { toShownAddress } from '#otel/export/collector-advice.ts';
import { CollectorHeaders } from '#otel/export/collector-headers.ts';
import type { Metrics } from '#otel/metrics/start-metrics.ts';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { Telemetry } from '#otel/start-telemetry.ts';
import { AdminAccess } from './admin/access/admin-access.ts';
import { FailedTokens } from './admin/access/failed-tokens.ts';
import type { ReloadOutcome } from './admin/admin-collaborators.ts';
import type { RunningFigures } from './admin/dashboard/traffic/live-figures.ts';
import { configureAdminListener, useAdminTls } from './admin/listener/admin-listener.ts';
import { createCertificateReader } from './certificates/certificate-files.ts';
import { CertificateWatcher } from './certificates/certificate-watcher.ts';
import { ClientLimitTable } from './client-limits/client-limit-table.ts';
import { LimitRows, type TenantKind } from './client-limits/limit-rows.ts';
import { ClientsWatcher } from './clients/clients-watcher.ts';
import { type ClientList, readClients } from './clients/read-clients.ts';
import { composeAdmin } from './composition/compose-admin.ts';
import { composeDataPlane } from './composition/compose-data-plane.ts';
import { composeReplicas, withCertificates } from './composition/compose-replicas.ts';
import { composeResponseExchange } from './composition/compose-response-exchange.ts';
import { ConfigInEffect } from './composition/config-in-effect.ts';
import type { GatewayCollaborators } from './composition/gateway-collaborators.ts';
import type { Config } from './config/config.ts';
import type { EnvironmentSecrets } from './config/secrets/environment-secrets.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { ResponseExchange } from './fleet/responses/response-exchange.ts';
import { createInTurn } from './in-turn.ts';
import { JwksSource } from './jwt/jwks-source.ts';
import { createReload } from './reload-config.ts';
import type { ReplicaDiscovery } from './replicas/control/discovery/replica-discovery.ts';
import { createResolver } from './replicas/control/discovery/resolver.ts';
import type { Drains } from './replicas/control/drains/drains.ts';
import type { HealthChecker } from './replicas/control/health/health-checker.ts';
import type { ReplicaRegistry } from './replicas/control/registry/registry.ts';
import { SharedState } from './replicas/shared/shared-state.ts';
import type { Serving } from './serving/serving.ts';
import { allocateServingMemory } from './serving/serving-memory.ts';
import { toAdminListenerSettings, toWorkerCount } from './serving/settings.ts';
import { orStartError } from './start-error.ts';
import { readVersion } from './version.ts';

/** The parts of a gateway that are started and stopped: one control plane, and the data plane (`serving`). */
export interface GatewayParts {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly discovery: ReplicaDiscovery;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  /** Null: this gateway is in no fleet. */
  readonly responseExchange: ResponseExchange | null;
  readonly healthChecker: HealthChecker;
  readonly telemetry: Telemetry;
  readonly figures: RunningFigures;
  readonly metrics: Metrics;
  readonly serving: Serving;
  readonly adminListener: Server;
  readonly certificateWatcher: CertificateWatcher;
  readonly clientsWatcher: ClientsWatcher;
  readonly jwksSource: JwksSource;
  /** `tokenName`: whose token asked for it; null for a signal. */
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  /** The durations of a shutdown, as of the last reload. */
  readonly shutdown: () => Config['shutdown'];
  /** Where records are posted, without credentials; null if they go to files. */
  readonly collector: string | null;
  readonly workerCount: number;
}

/** How soon new contents of certificate files, and of the file of clients, are used. */
const FILE_INTERVAL_MS = 10_000;

/**
 * The composition root: creates every part of a gateway from its configuration and connects them. No part listens yet;
 * src/gateway.ts starts and stops them. Rejects with a StartError when something that they need is missing.
 */
export async function composeGateway(
  config: Config,
  collaborators: GatewayCollaborators,
): Promise<GatewayParts> {
  const { secrets, log, resolver = createResolver() } = collaborators;
  // If a step fails, what the steps before it have started is stopped.
  await using started = new AsyncDisposableStack();
  const version = await readVersion();
  const inEffect = new ConfigInEffect(config);
  const readCertificates = createCertificateReader();
  const certificates = await readCertificates(config);
  const workerCount = toWorkerCount(config);
  const memory = allocateServingMemory(workerCount, config.limits);
  const shared = new SharedState(memory.replicas);
  const limitRows = new LimitRows(new ClientLimitTable(memory.clientLimits));
  const clientList = await readClients(config);
  const jwksSource = new JwksSource({ use: (keys) => serving.useJwtKeys(keys), log });
  started.defer(() => jwksSource.stop());
  await jwksSource.open(config.jwt?.jwks ?? null);
  limitRows.configureTenants(toTenantLimitSettings(config));
  const authority = {
    refreshKeys: () => jwksSource.refresh(),
    limitRowOf: async (kind: TenantKind, tenant: string) => limitRows.rowOfTenant(kind, tenant),
  };
  const withRows = (clients: ClientList['clients']) => clients && limitRows.assign(clients);

  const replicas = await composeReplicas(config, {
    ...{ certificates, shared, clientLimits: limitRows, resolver, log, started },
    redisUrl: () => inEffect.config.fleet?.url ?? '',
    rampMs: () => inEffect.config.rollout.rampMs,
    serving: () => serving,
    routingPolicy: () => inEffect.config.routing.policy,
    onPeersSwitch: (isOn) => dataPlane.comparePeers(isOn),
    onAction: (action) => telemetry.recordAdminAction(action),
  });
  const { registry, drains, fleet, discovery, healthChecker } = replicas;
  const responseExchange = composeResponseExchange(inEffect, memory, log);
  const failedTokens = new FailedTokens(log);
  const collectorHeaders = await orStartError(
    'telemetry',
    Promise.try(() => new CollectorHeaders(secrets.collectorHeaders)),
  );
  const surroundings = { ...collaborators, certificates, replicas, memory, version, failedTokens };
  const clients = withRows(clientList.clients);
  const dataPlane = await composeDataPlane(inEffect, {
    ...surroundings,
    ...{ clients, authority, jwtKeys: jwksSource.current, collectorHeaders, started },
  });
  const { serving, telemetry, metrics, figures } = dataPlane;

  const access = new AdminAccess(secrets.tokens);
  const onAction = (action: AdminAction) => telemetry.recordAdminAction(action);
  const inTurn = createInTurn();
  /** Applies the replicas first, because only they can be refused. */
  const apply = async (next: Config, nextSecrets: EnvironmentSecrets) => {
    const useHeaders = await orStartError(
      'telemetry',
      Promise.try(() => collectorHeaders.prepare(nextSecrets.collectorHeaders)),
    );
    const [read, nextClients, nextKeys] = await Promise.all([
      readCertificates(next),
      readClients(next),
      jwksSource.prepare(next.jwt?.jwks ?? null),
    ]);
    const changes = await discovery.configure(withCertificates(next, read));
    await certificateWatcher.adopt(read);
    if (next.log.level !== inEffect.config.log.level) log.level = next.log.level;
    configureAdminListener(adminListener, toAdminListenerSettings(next));
    await jwksSource.adopt(nextKeys);
    limitRows.configureTenants(toTenantLimitSettings(next));
    await serving.configure(next);
    await clientsWatcher.adopt(nextClients);
    healthChecker.configure(next.health);
    responseExchange?.configure(next.endpoints.includes('responses'));
    access.configure(nextSecrets.tokens);
    useHeaders();
    inEffect.replace(next);
    return changes;
  };
  const reload = createReload(collaborators.configSource, { inTurn, secrets, apply, onAction, log });
  const adminListener = composeAdmin(inEffect, { ...surroundings, dataPlane, access, reload, onAction });
  const certificateWatcher = new CertificateWatcher(certificates, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log, epochMs: Date.now },
    read: () => readCertificates(inEffect.config),
    async useForListeners({ listen, admin }) {
      if (listen !== null) await serving.useTls(listen);
      if (admin !== null) useAdminTls(adminListener, admin);
    },
    async useForReplicas(next) {
      // A service may have grown beyond the most replicas that there can be.
      await orStartError('replicas', discovery.configure(withCertificates(inEffect.config, next)));
    },
  });

  const clientsWatcher = new ClientsWatcher(clientList, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log },
    sources: () => inEffect.config,
    use: (next) => serving.useClients(withRows(next)),
  });

  // From here on src/gateway.ts stops it.
  started.move();
  return {
    ...{
      registry,
      drains,
      discovery,
      fleet,
      responseExchange,
      healthChecker,
      telemetry,
      figures,
      metrics,
      serving,
    },
    ...{ adminListener, certificateWatcher, clientsWatcher, jwksSource, reload, workerCount },
    shutdown: () => inEffect.config.shutdown,
    collector: telemetry.collector === undefined ? null : toShownAddress(telemetry.collector),
  };
}

function toTenantLimitSettings({ jwt, tenantLimits }: Config) {
  return { jwt: jwt?.limits ?? null, tenantLimits };
}
