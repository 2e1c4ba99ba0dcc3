import type { Logger } from 'pino';
import { toShownName } from '#otel/encode/shown-name.ts';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { Certificates } from '../certificates/certificate-files.ts';
import type { LimitRows } from '../client-limits/limit-rows.ts';
import type { Config } from '../config/config.ts';
import { type Fleet, openFleet } from '../fleet/fleet.ts';
import { FleetLog } from '../fleet/fleet-log.ts';
import { createMembershipFile } from '../fleet/membership-file.ts';
import { createRedisStore } from '../fleet/redis/redis-store.ts';
import { createPodCheck } from '../replicas/control/discovery/kubernetes/gate/pod-check.ts';
import { type DiscoverySettings, ReplicaDiscovery } from '../replicas/control/discovery/replica-discovery.ts';
import type { Resolver } from '../replicas/control/discovery/resolver.ts';
import { createDrainFile } from '../replicas/control/drains/drain-file.ts';
import { Drains } from '../replicas/control/drains/drains.ts';
import { FrozenWatch } from '../replicas/control/health/frozen-watch.ts';
import { HealthChecker } from '../replicas/control/health/health-checker.ts';
import { HealthDecisions } from '../replicas/control/health/health-decisions.ts';
import { PeerWatch } from '../replicas/control/health/peer-watch.ts';
import type { ProbeTarget } from '../replicas/control/probe.ts';
import { ReplicaRegistry } from '../replicas/control/registry/registry.ts';
import type { PoolSnapshot } from '../replicas/pool-snapshot.ts';
import type { SharedState } from '../replicas/shared/shared-state.ts';
import type { Serving } from '../serving/serving.ts';
import { toConnectionTimeouts } from '../serving/settings.ts';
import { orStartError } from '../start-error.ts';

/** The control plane of the replicas: which there are, which are drained, which answer. */
export interface ReplicaControl {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  /** Null: this gateway shares its drains with no other gateway. */
  readonly fleet: Fleet | null;
  readonly discovery: ReplicaDiscovery;
  readonly healthChecker: HealthChecker;
  readonly healthDecisions: HealthDecisions;
  readonly peerWatch: PeerWatch;
  /** Whether a model, in the form that records have, is one of a replica. */
  readonly isKnownModel: (model: string) => boolean;
}

interface ReplicaControlCollaborators {
  readonly certificates: Certificates;
  readonly shared: SharedState;
  /** What clients with limits use, which a fleet shares. */
  readonly clientLimits: LimitRows;
  readonly resolver: Resolver;
  readonly log: Logger;
  /** Gets what stops the parts again. */
  readonly started: AsyncDisposableStack;
  /** The URL of the fleet's store, as of the last reload. */
  readonly redisUrl: () => string;
  /** How long the turns of a replica grow, in effect; 0: not at all. */
  readonly rampMs: () => number;
  /** The data plane. It is not asked for before the gateway starts. */
  readonly serving: () => Serving;
  /** The policy in effect. */
  readonly routingPolicy: () => string;
  /** Called with whether replicas are compared with their peers. Not called before the gateway starts. */
  readonly onPeersSwitch: (isOn: boolean) => void;
  /** Makes the span of a decision. Not called before the gateway starts. */
  readonly onAction: (action: AdminAction) => void;
}

/** Composes the control plane of the replicas. Rejects with a StartError if a file in state_dir cannot be used. */
export async function composeReplicas(
  config: Config,
  {
    certificates,
    shared,
    clientLimits,
    resolver,
    redisUrl,
    rampMs,
    log,
    started,
    serving,
    routingPolicy: policy,
    onPeersSwitch: onSwitch,
    onAction,
  }: ReplicaControlCollaborators,
): Promise<ReplicaControl> {
  const file = createDrainFile(config.stateDir, log);
  const drains = new Drains({ shared, file, barrier: () => serving().confirm() });
  started.defer(() => drains.close());
  await orStartError('drain states', drains.restore());
  const registry = new ReplicaRegistry({ shared, drains, timeouts: toConnectionTimeouts(config) });
  started.defer(() => registry.close());
  const fleet = await orStartError(
    'fleet',
    openConfiguredFleet(config, { drains, registry, clientLimits, redisUrl, log }),
  );
  started.defer(() => fleet?.leave());
  const { health: table, silences } = shared;
  const decisions = new HealthDecisions({ registry, log, onAction });
  const frozen = new FrozenWatch({ registry, table, silences, decisions });
  const peerWatch = new PeerWatch({ registry, shared, decisions, policy, onSwitch });
  const healthChecker = new HealthChecker(config.health, {
    ...{ registry, table, decisions, frozen, peers: peerWatch },
  });
  let knownModels: ReadonlySet<string> = new Set();
  const probeHealth = (target: ProbeTarget, timeoutMs: number) => healthChecker.probe(target, timeoutMs);
  const discovery = new ReplicaDiscovery(withCertificates(config, certificates), {
    ...{ registry, resolver, log },
    probeHealth,
    checkPod: createPodCheck({ connectMs: config.timeouts.connectMs, probeHealth }),
    beginRamp(name) {
      const durationMs = rampMs();
      if (durationMs > 0 && !drains.stateOf(name).drained) drains.setRamp(name, { elapsedMs: 0, durationMs });
    },
    async publish() {
      const { cursors } = await publish(registry, serving());
      knownModels = new Set(Array.from(cursors.keys(), (model) => toShownName(model)));
    },
  });
  const isKnownModel = (model: string) => knownModels.has(model);
  return {
    ...{ registry, drains, fleet, discovery, healthChecker, peerWatch, isKnownModel },
    healthDecisions: decisions,
  };
}

/** The replicas of a configuration, with the contents of their certificate files. */
export function withCertificates(config: Config, { replicas, services }: Certificates): DiscoverySettings {
  return { ...config, replicas, services };
}

async function openConfiguredFleet(
  { gateway, fleet, stateDir }: Config,
  {
    drains,
    registry,
    clientLimits,
    redisUrl,
    log,
  }: Pick<ReplicaControlCollaborators, 'clientLimits' | 'redisUrl' | 'log'> &
    Pick<ReplicaControl, 'drains' | 'registry'>,
): Promise<Fleet | null> {
  if (fleet === null) return null;
  return await openFleet(gateway.name, {
    store: createRedisStore({ url: redisUrl, prefix: fleet.prefix }),
    file: createMembershipFile(stateDir, log),
    drains,
    inflight: () => registry.inflightByName(),
    clientLimits,
    log: new FleetLog(log),
  });
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
