import { orStartError } from '#base';
import type { Config, SecuredReplica } from '#config';
import { type Log, toShownName } from '#otel/base';
import {
  type DiscoverySettings,
  type ListedPodUids,
  ReplicaDiscovery,
  type Resolver,
  type SourceState,
} from '#replicas/discovery';
import { createDrainFile, Drains, forgetGoneNames } from '#replicas/drains';
import {
  type EndedStream,
  FrozenWatch,
  type HealthAction,
  HealthChecker,
  type HealthDecisionCount,
  HealthDecisions,
  PeerWatch,
  StreamSilenceLearner,
} from '#replicas/health';
import type { HealthDecision } from '#replicas/health-state';
import { type EngineProbe, type ProbeTarget, probeEngine } from '#replicas/probes';
import {
  BackgroundCounts,
  findLastServer,
  type RegisteredReplica,
  type ReplicaChanges,
  ReplicaRegistry,
} from '#replicas/registry';
import type { SharedState } from '#replicas/shared';
import type { PoolSnapshot } from '#replicas/terms';
import type { OnStateWrite } from '#state-dir';
import type { Observation } from '#verdict/blocks';
import { type ModelAvailability, toModelAvailabilities } from './model-availability.ts';
import { type TrialAction, Trials } from './trials.ts';

export interface ReplicaControlSettings {
  readonly config: DiscoverySettings & Omit<Config, 'replicas'>;
}

export interface ReplicaControlCollaborators {
  readonly shared: SharedState;
  /** Resolves the DNS names of services. */
  readonly resolver: Resolver;
  /** How long the turns of a replica grow, in effect; 0: not at all. */
  readonly rampMs: () => number;
  /** The policy in effect. */
  readonly routingPolicy: () => string;
  readonly onStateWrite: OnStateWrite;
  readonly log: Log<'debug' | 'info' | 'warn' | 'error'>;
}

/** The data plane, as the control plane of the replicas needs it. */
export interface ReplicaDataPlane {
  /** Hands the replicas to every worker. Resolves once each has them. */
  apply(snapshot: PoolSnapshot): Promise<void>;
  /** Resolves when each worker has answered a message or failed to in time: the numbers, from 1, of the latter. */
  confirm(): Promise<readonly number[]>;
  /** Whether the facts of requests are to be passed to `observe`. At first they are not. */
  comparePeers(isOn: boolean): void;
  /** Makes the span of a decision, or of what became of a shadow. */
  recordAction(action: HealthAction | TrialAction): void;
}

/** How long a replica may take to answer a probe that the admin API asks for: longer than a busy engine needs. */
const PROBE_NOW_TIMEOUT_MS = 5_000;

/** An engine that has just started may compile before its first answer. */
const ENGINE_PROBE_TIMEOUT_MS = 10_000;

/**
 * Creates the control plane of the replicas with the drain states that an earlier run stored. Nothing is looked for and
 * nothing is probed yet. Rejects with a StartError if a file in state_dir cannot be used.
 */
export async function createReplicaControl(
  settings: ReplicaControlSettings,
  collaborators: ReplicaControlCollaborators,
): Promise<ReplicaControl> {
  const { config } = settings;
  const { shared, log, onStateWrite } = collaborators;
  // If a step fails, what the steps before it have opened is closed.
  await using opened = new AsyncDisposableStack();
  const link = new DataPlaneLink();
  const drains = new Drains({
    shared,
    file: createDrainFile(config.stateDir, log, onStateWrite),
    barrier: () => link.confirm(),
    log,
  });
  opened.defer(() => drains.close());
  await orStartError('drain states', drains.restore());
  const background = new BackgroundCounts();
  const registry = new ReplicaRegistry({ shared, background, drains }, config.timeouts.connectMs);
  opened.defer(() => registry.close());
  // The gateways of a fleet forget together: each would teach the others what they have forgotten.
  if (config.state.redis === null) opened.use(forgetGoneNames(drains, { epochMs: Date.now, log }));
  const parts = { registry, drains, background, link, opened: opened.move() };
  return new ReplicaControl(settings, collaborators, parts);
}

/** What leads to the data plane, which is composed after the control plane. Until then there is no worker. */
class DataPlaneLink {
  plane: ReplicaDataPlane | null = null;

  async confirm(): Promise<readonly number[]> {
    return (await this.plane?.confirm()) ?? [];
  }
}

interface OpenedParts {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly background: BackgroundCounts;
  readonly link: DataPlaneLink;
  readonly opened: AsyncDisposableStack;
}

/**
 * The control plane of the replicas. In its life: `connect`, `start`, `startChecks`, then `stop`, after which nothing
 * changes by itself, and `close`.
 */
export class ReplicaControl {
  /** The replicas that there are now. */
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  /** How many responses servers go on with after their answers. */
  readonly backgroundCounts: BackgroundCounts;
  readonly trials: Trials;
  readonly #link: DataPlaneLink;
  readonly #opened: AsyncDisposableStack;
  readonly #decisions: HealthDecisions;
  readonly #peers: PeerWatch;
  readonly #checker: HealthChecker;
  readonly #streamSilences: StreamSilenceLearner;
  readonly #discovery: ReplicaDiscovery;

  constructor(
    { config }: ReplicaControlSettings,
    { shared, resolver, rampMs, routingPolicy: policy, log }: ReplicaControlCollaborators,
    { registry, drains, background, link, opened }: OpenedParts,
  ) {
    this.registry = registry;
    this.drains = drains;
    this.backgroundCounts = background;
    this.#link = link;
    this.#opened = opened;
    const { health: table, silences, ramps } = shared;
    const onAction = (action: HealthAction | TrialAction) => link.plane?.recordAction(action);
    const decisions = new HealthDecisions({ registry, log, onAction });
    const frozen = new FrozenWatch({ registry, table, silences, ramps, decisions });
    const onSwitch = (isOn: boolean) => link.plane?.comparePeers(isOn);
    const peers = new PeerWatch({ registry, shared, decisions, policy, onSwitch });
    const checker = new HealthChecker(config.health, { registry, table, decisions, frozen, peers, log });
    const beginRamp = (name: string) => {
      const durationMs = rampMs();
      if (durationMs > 0 && !drains.stateOf(name).drained) drains.setRamp(name, { elapsedMs: 0, durationMs });
    };
    const probeHealth = (target: ProbeTarget, timeoutMs: number) => checker.probe(target, timeoutMs);
    this.#decisions = decisions;
    this.#peers = peers;
    this.#checker = checker;
    this.#streamSilences = new StreamSilenceLearner(shared.silenceLimits, silences.nowMs);
    this.#discovery = new ReplicaDiscovery(config, {
      registry,
      resolver,
      log,
      probeHealth,
      beginRamp,
      publish: () => this.#publish(),
    });
    this.trials = new Trials({
      log,
      onAction,
      beginRamp,
      republish: () => this.#discovery.republish(),
    });
  }

  /** Connects the data plane. Call it before `start`. */
  connect(plane: ReplicaDataPlane): void {
    this.#link.plane = plane;
  }

  /** Finds replicas: what it can in a few seconds, the rest when it is found. Rejects with a TooManyReplicasError. */
  start(): Promise<void> {
    return this.#discovery.start();
  }

  /** Starts the health checks and the comparison with peers. */
  startChecks(): void {
    this.#checker.start();
  }

  /**
   * Takes over another configuration. Resolves when every worker uses it: none sends a request to a replica that was
   * removed. Rejects with a TooManyReplicasError, and then changes nothing.
   */
  async configure(
    settings: DiscoverySettings & Pick<Config, 'health' | 'timeouts'>,
  ): Promise<ReplicaChanges> {
    const changes = await this.#discovery.configure(settings);
    this.registry.connectWithin(settings.timeouts.connectMs);
    this.#checker.configure(settings.health);
    return changes;
  }

  /** A model that nobody would serve with these replicas, because the last one becomes a shadow; null: there is none. */
  findLastServer(wanted: readonly Pick<SecuredReplica, 'name' | 'role'>[]) {
    return findLastServer(this.registry.replicas, wanted);
  }

  /** Looks for nothing any more and checks nothing. Drains still work, as does what the admin API asks for. */
  stop(): void {
    this.trials.stop();
    this.#discovery.stop();
    this.#checker.stop();
  }

  /** Closes the connections for probes and the file of drains. */
  close(): Promise<void> {
    return this.#opened.disposeAsync();
  }

  /** Whether Kubernetes or DNS answers for each service. */
  get sources(): readonly SourceState[] {
    return this.#discovery.sources;
  }

  /** The uids of the pods with all of these labels (`key=value`), in the namespaces of the replicas. Never rejects. */
  listPods(labels: readonly string[]): Promise<ListedPodUids> {
    return this.#discovery.listPods(labels);
  }

  /** How many replicas each model has. */
  get models(): readonly ModelAvailability[] {
    return toModelAvailabilities(this.registry.serving);
  }

  /** Asks a replica for its models if they are not configured, even a drained one: it is about to be undrained. */
  refresh(replica: RegisteredReplica): Promise<void> {
    return this.#discovery.refresh(replica);
  }

  /** Probes a replica now, even if active checks are off, and notes its reachability. Skips a drained one. */
  ask(replica: RegisteredReplica): Promise<void> {
    return this.#checker.askNow(replica, PROBE_NOW_TIMEOUT_MS);
  }

  /** Asks a replica for its models, and if wanted for a small completion. Never rejects. */
  probeEngine(replica: RegisteredReplica, hasCompletion: boolean): Promise<EngineProbe> {
    return probeEngine(replica, { timeoutMs: ENGINE_PROBE_TIMEOUT_MS, hasCompletion });
  }

  /** Notes what requests have shown of the health of a replica. */
  noteHealth(decision: HealthDecision): void {
    this.#decisions.note(decision);
  }

  /** How often each judge has decided on the health of a replica. */
  healthCountsOf(replica: RegisteredReplica): readonly HealthDecisionCount[] {
    return this.#decisions.countsOf(replica);
  }

  /**
   * Takes the facts of a request that has ended, for the comparison of its replica with its peers. `hasHung`: a time-out
   * ended it.
   */
  observe(observation: Observation, hasHung: boolean): void {
    this.#peers.observe(observation, hasHung);
  }

  /** Takes the times of a stream that has ended well, from which follows when others are silent. */
  learn(stream: EndedStream): void {
    this.#streamSilences.add(stream);
  }

  /** Resolves when nothing can be written to a removed replica any more. */
  async #publish(): Promise<void> {
    this.trials.forgetRemoved(this.registry);
    const snapshot = this.registry.nextSnapshot();
    this.#streamSilences.take(
      new Map([...snapshot.cursors].map(([model, cursor]) => [toShownName(model), cursor])),
    );
    await this.#link.plane?.apply(snapshot);
    this.registry.noteApplied(snapshot.version);
    await this.#link.confirm();
  }
}
