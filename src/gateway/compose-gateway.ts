import type { Server } from 'node:http';
import {
  type Certificates,
  CertificateWatcher,
  ClientLimitTable,
  type ClientList,
  ClientsWatcher,
  createCertificateReader,
  JwksSource,
  LimitRows,
  readClients,
  type TenantKind,
} from '#access';
import {
  AdminAccess,
  configureAdminListener,
  FailedTokens,
  type ReloadOutcome,
  type RunningFigures,
  useAdminTls,
} from '#admin';
import type { BackgroundWork } from '#background';
import { createInTurn, orStartError, readVersion } from '#base';
import type { Config, EnvironmentSecrets } from '#config';
import type { Fleet, ResponseExchange } from '#fleet';
import type { Telemetry } from '#otel';
import { CollectorHeaders, toShownAddress } from '#otel/export';
import type { Metrics } from '#otel/metrics';
import type { AdminAction } from '#otel/span';
import {
  createReplicaControl,
  createResolver,
  createStoredResponsesFile,
  type ReplicaControl,
  type StoredResponsesFile,
} from '#replicas/control';
import { SharedState, StoredResponses } from '#replicas/shared';
import { composeAdmin } from './composition/compose-admin.ts';
import { composeDataPlane } from './composition/compose-data-plane.ts';
import { composeFleet } from './composition/compose-fleet.ts';
import { composeResponseExchange } from './composition/compose-response-exchange.ts';
import { ConfigInEffect } from './composition/config-in-effect.ts';
import type { GatewayCollaborators } from './composition/gateway-collaborators.ts';
import { orTelemetryError } from './composition/or-telemetry-error.ts';
import { createReload } from './reload-config.ts';
import type { Serving } from './serving/serving.ts';
import { allocateServingMemory } from './serving/serving-memory.ts';
import { toAdminListenerSettings, toConnectionTimeouts, toWorkerCount } from './serving/settings.ts';

/** The parts of a gateway that are started and stopped: one control plane, and the data plane (`serving`). */
export interface GatewayParts {
  readonly replicas: ReplicaControl;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  /** Null: this gateway is in no fleet. */
  readonly responseExchange: ResponseExchange | null;
  readonly responsesFile: StoredResponsesFile;
  readonly telemetry: Telemetry;
  readonly figures: RunningFigures;
  readonly metrics: Metrics;
  readonly serving: Serving;
  readonly background: BackgroundWork;
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
 * src/gateway/create-gateway.ts starts and stops them. Rejects with a StartError when something that they need is missing.
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

  const timeouts = toConnectionTimeouts(config);
  const replicas = await createReplicaControl(
    { config: withCertificates(config, certificates), timeouts },
    {
      shared: new SharedState(memory.replicas),
      resolver,
      rampMs: () => inEffect.config.rollout.rampMs,
      routingPolicy: () => inEffect.config.routing.policy,
      log,
    },
  );
  started.defer(() => replicas.close());
  const fleet = await composeFleet(inEffect, { replicas, limitRows, log });
  started.defer(() => fleet?.leave());
  const responseExchange = composeResponseExchange(inEffect, memory, log);
  const responsesFile = createStoredResponsesFile(
    config.stateDir,
    new StoredResponses(memory.storedResponses),
    log,
  );
  await orStartError('state_dir', responsesFile.restore());
  const failedTokens = new FailedTokens(log);
  const collectorHeaders = await orTelemetryError(
    'telemetry',
    () => new CollectorHeaders(secrets.collectorHeaders),
  );
  const surroundings = { ...collaborators, certificates, replicas, memory, version, failedTokens };
  const clients = withRows(clientList.clients);
  const dataPlane = await composeDataPlane(inEffect, {
    ...surroundings,
    ...{ clients, authority, limitRows, jwtKeys: jwksSource.current, collectorHeaders, started },
  });
  const { serving, background, telemetry, metrics, figures } = dataPlane;

  const access = new AdminAccess(secrets.tokens);
  const onAction = (action: AdminAction) => telemetry.recordAdminAction(action);
  const inTurn = createInTurn();
  /** Applies the replicas first, because only they can be refused. */
  const apply = async (next: Config, nextSecrets: EnvironmentSecrets) => {
    const useHeaders = await orTelemetryError('telemetry', () =>
      collectorHeaders.prepare(nextSecrets.collectorHeaders),
    );
    const [read, nextClients, nextKeys] = await Promise.all([
      readCertificates(next),
      readClients(next),
      jwksSource.prepare(next.jwt?.jwks ?? null),
    ]);
    const changes = await replicas.configure(withCertificates(next, read));
    await certificateWatcher.adopt(read);
    if (next.log.level !== inEffect.config.log.level) log.level = next.log.level;
    configureAdminListener(adminListener, toAdminListenerSettings(next));
    await jwksSource.adopt(nextKeys);
    limitRows.configureTenants(toTenantLimitSettings(next));
    await serving.configure(next);
    await clientsWatcher.adopt(nextClients);
    responseExchange?.configure(next.endpoints.includes('responses'));
    access.configure(nextSecrets.tokens);
    useHeaders();
    inEffect.replace(next);
    return changes;
  };
  const reload = createReload(collaborators.configSource, { inTurn, secrets, apply, onAction, log });
  const adminListener = composeAdmin(inEffect, {
    ...surroundings,
    fleet,
    dataPlane,
    access,
    reload,
    onAction,
  });
  const certificateWatcher = new CertificateWatcher(certificates, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log, epochMs: Date.now },
    read: () => readCertificates(inEffect.config),
    async useForListeners({ listen, admin }) {
      if (listen !== null) await serving.useTls(listen);
      if (admin !== null) useAdminTls(adminListener, admin);
    },
    async useForReplicas(next) {
      // A service may have grown beyond the most replicas that there can be.
      await orStartError('replicas', replicas.configure(withCertificates(inEffect.config, next)));
    },
  });

  const clientsWatcher = new ClientsWatcher(clientList, {
    ...{ intervalMs: FILE_INTERVAL_MS, inTurn, log },
    sources: () => inEffect.config,
    use: (next) => serving.useClients(withRows(next)),
  });

  // From here on src/gateway/create-gateway.ts stops it.
  started.move();
  return {
    ...{
      replicas,
      fleet,
      responseExchange,
      responsesFile,
      telemetry,
      figures,
      metrics,
      serving,
      background,
    },
    ...{ adminListener, certificateWatcher, clientsWatcher, jwksSource, reload, workerCount },
    shutdown: () => inEffect.config.shutdown,
    collector: telemetry.collector === undefined ? null : toShownAddress(telemetry.collector),
  };
}

/** The configuration, with the contents of the certificate files of replicas. */
function withCertificates(config: Config, { replicas, services }: Certificates): Config {
  return { ...config, replicas, services };
}

function toTenantLimitSettings({ jwt, tenantLimits }: Config) {
  return { jwt: jwt?.limits ?? null, tenantLimits };
}
