import { setTimeout as sleep } from 'node:timers/promises';
import { type Certificates, CertificateWatcher, createCertificateReader } from '#access/certificates';
import { type ClientList, ClientsWatcher, readClients } from '#access/clients';
import { JwksSource } from '#access/jwt';
import { ClientLimitTable, LimitRows, type TenantKind } from '#access/limits';
import { createClientUsage, FailedTokens, type ReloadOutcome } from '#admin';
import { createInTurn, orStartError, StartError } from '#base';
import { readVersion } from '#base/embedded';
import type { Config } from '#config';
import { toShownName } from '#otel/base';
import { CollectorHeaders, toShownAddress } from '#otel/collector';
import { createReplicaControl, createStoredResponsesFile, type ReplicaControl } from '#replicas/control';
import { createResolver } from '#replicas/discovery';
import type { ReplicaChanges } from '#replicas/registry';
import { SharedState } from '#replicas/shared';
import { StoredResponses } from '#replicas/stored-responses';
import { createBoard } from './composition/board.ts';
import { composeAdmin } from './composition/compose-admin.ts';
import { composeDataPlane } from './composition/compose-data-plane.ts';
import { composeFleet } from './composition/compose-fleet.ts';
import { composeHistory } from './composition/compose-history.ts';
import { composeResponseExchange } from './composition/compose-response-exchange.ts';
import { composeRollouts } from './composition/compose-rollouts.ts';
import { composeStatementKey } from './composition/compose-statement-key.ts';
import { ConfigInEffect } from './composition/config-in-effect.ts';
import { createLoadChannels } from './composition/fleet-channel.ts';
import type { Composition, GatewayCollaborators } from './composition/gateway-collaborators.ts';
import { GatewayEvents } from './composition/gateway-events.ts';
import { listenOn } from './composition/listen-on.ts';
import { orTelemetryError } from './composition/or-telemetry-error.ts';
import { addProducers } from './conditions/add-producers.ts';
import { addConfigConditions } from './conditions/config-conditions.ts';
import { createStateWriteNotes } from './conditions/file-conditions.ts';
import type { Parts } from './parts.ts';
import { createReload } from './reload-config.ts';
import type { Serving } from './serving/serving.ts';
import { allocateServingMemory } from './serving/serving-memory.ts';
import { toWorkerCount } from './serving/settings.ts';

/** A gateway that serves. */
export interface ServingGateway {
  /** Where clients connect, with the port that the system has picked. */
  readonly listen: Config['gateway']['listen'];
  readonly adminListen: Config['gateway']['listen'];
  readonly replicaCount: number;
  /** The models that the replicas are known to serve. */
  readonly models: readonly string[];
  /** Where records are posted, without credentials; null if they go to files. */
  readonly collector: string | null;
  readonly workerCount: number;
}

/** What can be asked of a gateway that was composed. */
export interface ComposedGateway {
  /** `tokenName`: whose token asked for it; null for a signal. */
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  /** The durations of a shutdown, as of the last reload. */
  readonly shutdown: () => Config['shutdown'];
  /** Once its parts have started. */
  readonly describe: () => ServingGateway;
}

/** How soon new contents of certificate files, and of the file of clients, are used. */
const FILE_INTERVAL_MS = 10_000;

/**
 * The composition root: creates every part of a gateway from its configuration, connects them, and adds them to `parts`,
 * which starts and stops them. Rejects with a StartError when something that they need is missing.
 */
export async function composeGateway(
  config: Config,
  collaborators: GatewayCollaborators,
  parts: Parts,
): Promise<ComposedGateway> {
  const { secrets, log } = collaborators;
  const inEffect = new ConfigInEffect(config);
  const events = new GatewayEvents();
  const inTurn = createInTurn();
  const readCertificates = createCertificateReader();
  const certificates = await readCertificates(config);
  const statementKey = await composeStatementKey(inEffect);
  const workerCount = toWorkerCount(config);
  const memory = allocateServingMemory(workerCount, config.limits);
  const board = createBoard({ log, events, parts });
  const version = await readVersion();
  const onStateWrite = createStateWriteNotes(board);
  const loadChannels = createLoadChannels(inEffect);
  const composition = {
    inEffect,
    collaborators,
    parts,
    events,
    board,
    onStateWrite,
    memory,
    loadChannels,
    version,
  };

  /** Of the configuration that is prepared, or in effect. */
  let read = certificates;
  let changes: ReplicaChanges = { added: [], changed: [], removed: [] };
  const replicas = await composeReplicas(composition, certificates);
  // Only the replicas can refuse a configuration that was prepared: they come first.
  inEffect.onChange(async (next) => {
    const last = replicas.findLastServer(next.replicas);
    if (last !== null) {
      const { replica, model } = last;
      throw new StartError(
        `replicas: ${replica} cannot become a shadow, as it alone serves ${toShownName(model)}`,
      );
    }
    read = await readCertificates(next);
    return async () => {
      changes = await replicas.configure(withCertificates(next, read));
    };
  });
  inEffect.onValues(({ log: { level } }) => {
    if (level !== inEffect.config.log.level) log.level = level;
  });
  const limitRows = new LimitRows(new ClientLimitTable(memory.clientLimits));
  limitRows.configureTenants(config);
  inEffect.onValues((next) => limitRows.configureTenants(next));
  const withRows = (clients: ClientList['clients']) => clients && limitRows.assign(clients);
  const clientList = await readClients(config);
  const jwksSource = await composeJwks(composition);
  const collectorHeaders = await composeCollectorHeaders(composition);
  const failedTokens = new FailedTokens(log);

  const dataPlane = await composeDataPlane(composition, {
    replicas,
    certificates,
    failedTokens,
    limitRows,
    collectorHeaders,
    clients: withRows(clientList.clients),
    jwtKeys: jwksSource.current,
    authority: {
      refreshKeys: () => jwksSource.refresh(),
      limitRowOf: async (kind: TenantKind, tenant: string) => limitRows.rowOfTenant(kind, tenant),
      tellUsage: (client, search) => tellUsage(client, search),
    },
  });
  const { serving, telemetry } = dataPlane;
  const history = composeHistory(composition, telemetry, replicas);
  const tellUsage = createClientUsage(history);
  const fleet = await composeFleet(composition, { replicas, limitRows });
  const rollouts = await composeRollouts(composition);
  const { configSource } = collaborators;
  const configConditions = configSource === undefined ? null : addConfigConditions(board, configSource);
  if (configConditions !== null) parts.add('watches', configConditions.watch);
  const reload = createReload(configSource, {
    inTurn,
    secrets,
    log,
    async apply(next, nextSecrets) {
      const changedFiles = await inEffect.change(next, nextSecrets);
      return { replicas: changes, changedFiles };
    },
    onAction: (action) => events.emit('action', action),
    onOutcome: (outcome) => configConditions?.onOutcome(outcome),
  });
  const admin = composeAdmin(composition, {
    replicas,
    fleet,
    dataPlane,
    history,
    certificates,
    failedTokens,
    rollouts,
    reload,
    statementKey,
  });
  const certificateWatcher = new CertificateWatcher(certificates, {
    intervalMs: FILE_INTERVAL_MS,
    inTurn,
    log,
    epochMs: Date.now,
    read: () => readCertificates(inEffect.config),
    async useForListeners(next) {
      if (next.listen !== null) await serving.all.useTls(next.listen);
      if (next.admin !== null) admin.listener.useTls(next.admin);
    },
    async useForReplicas(next) {
      // A service may have grown beyond the most replicas that there can be.
      await orStartError('replicas', replicas.configure(withCertificates(inEffect.config, next)));
    },
  });
  inEffect.onChange(async () => (changedFiles) => certificateWatcher.adopt(read, changedFiles));
  parts.add('watches', certificateWatcher);
  const clientsWatcher = new ClientsWatcher(clientList, {
    intervalMs: FILE_INTERVAL_MS,
    inTurn,
    log,
    sources: () => inEffect.config,
    async use(next) {
      await serving.all.useClients(withRows(next));
    },
  });
  inEffect.onChange(async (next) => {
    const nextClients = await readClients(next);
    return (changedFiles) => clientsWatcher.adopt(nextClients, changedFiles);
  });
  parts.add('watches', clientsWatcher);
  parts.add('watches', {
    start: () => jwksSource.start(async (keys) => void (await serving.all.useJwtKeys(keys))),
    stop: () => jwksSource.stop(),
  });
  await composeResponseExchange(composition);
  addProducers(composition, {
    replicas,
    dataPlane,
    certificateWatcher,
    clientsWatcher,
    fleet,
    jwksSource,
    failedTokens,
    limitRows,
    history,
    rollouts,
  });
  const clients = composeListener(composition, serving);

  return {
    reload,
    shutdown: () => inEffect.config.shutdown,
    describe: () => ({
      listen: { host: config.gateway.listen.host, port: clients.port },
      adminListen: { host: config.gateway.adminListen.host, port: admin.port },
      replicaCount: replicas.registry.replicas.length,
      models: [...new Set(replicas.registry.serving.flatMap(({ models }) => models ?? []))],
      collector: telemetry.collector === undefined ? null : toShownAddress(telemetry.collector),
      workerCount,
    }),
  };
}

/** The control plane of the replicas, and the file of whose stored responses they have. */
async function composeReplicas(
  { inEffect, collaborators: { resolver = createResolver(), log }, parts, memory, onStateWrite }: Composition,
  certificates: Certificates,
): Promise<ReplicaControl> {
  const { config } = inEffect;
  const replicas = await createReplicaControl(
    { config: withCertificates(config, certificates) },
    {
      shared: new SharedState(memory.replicas),
      resolver,
      rampMs: () => inEffect.config.rollout.rampMs,
      routingPolicy: () => inEffect.config.routing.policy,
      onStateWrite,
      log,
    },
  );
  parts.add('replicas', { stop: () => replicas.close() });
  parts.add('topology', { start: () => orStartError('replicas', replicas.start()) });
  parts.add('watches', { start: () => replicas.startChecks(), stop: () => replicas.stop() });
  const responses = createStoredResponsesFile(
    config.stateDir,
    new StoredResponses(memory.storedResponses),
    log,
  );
  await orStartError('state_dir', responses.restore());
  parts.add('stored responses', {
    stop: () =>
      responses
        .save()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'stored responses not saved: the next start knows none'),
        ),
  });
  return replicas;
}

/** The keys that verify tokens. They are not read again until they are started with what uses them. */
async function composeJwks({ inEffect, collaborators: { log } }: Composition): Promise<JwksSource> {
  const source = new JwksSource({ log });
  await source.open(inEffect.config.jwt?.jwks ?? null);
  inEffect.onChange(async ({ jwt }) => {
    const keys = await source.prepare(jwt?.jwks ?? null);
    return (changedFiles) => source.adopt(keys, changedFiles);
  });
  return source;
}

/** The headers that the collector gets. Rejects with a StartError if they are none. */
async function composeCollectorHeaders({
  inEffect,
  collaborators: { secrets },
}: Composition): Promise<CollectorHeaders> {
  const headers = await orTelemetryError('telemetry', () => new CollectorHeaders(secrets.collectorHeaders));
  inEffect.onChange(async (_, { collectorHeaders }) => {
    const use = await orTelemetryError('telemetry', () => headers.prepare(collectorHeaders));
    return async () => use();
  });
  return headers;
}

/** Where clients connect: they are served until the end of the grace period. */
function composeListener({ inEffect, parts }: Composition, serving: Serving): { port: number } {
  const { listen } = inEffect.config.gateway;
  const listener = { port: listen.port };
  parts.add('clients', {
    async start() {
      listener.port = await listenOn((to) => serving.listen(to), listen, 'listen');
    },
    async stop({ delayMs, graceMs }, lost) {
      serving.startClosing();
      if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
      lost.cutRequests += await serving.finish(graceMs);
    },
  });
  return listener;
}

/** The configuration, with the contents of the certificate files of replicas. */
function withCertificates(config: Config, { replicas }: Certificates) {
  return { ...config, replicas };
}
