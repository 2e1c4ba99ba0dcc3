import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { createInTurn } from '#base';
import type { Config, SecuredReplica } from '#config';
import { type Log, waitAtMost } from '#otel/base';
import type { ProbeResult, ProbeTarget } from '#replicas/probes';
import type { RegisteredReplica, ReplicaChanges, ReplicaRegistry } from '#replicas/registry';
import { MAX_REPLICAS } from '#replicas/shared';
import { expandService, mergeReplicas } from './expand-service.ts';
import { createPodCheck } from './kubernetes/gate/pod-check.ts';
import type { ListedPodUids } from './kubernetes/list-pod-uids.ts';
import { type Poll, startPoll } from './poll.ts';
import { ReachabilityLog } from './reachability-log.ts';
import { ReplicaProber } from './replica-prober.ts';
import { type Servers, splitServers } from './servers.ts';
import { ServiceEndpoints, type ServiceEndpointsCollaborators } from './service-endpoints.ts';
import type { SourceState } from './source-state.ts';

/** The configured replicas, with the contents of their files, and how often names and models are looked up. */
export type DiscoverySettings = Pick<Config, 'discovery'> & { readonly replicas: readonly SecuredReplica[] };

export interface DiscoveryCollaborators extends Pick<ServiceEndpointsCollaborators, 'resolver'> {
  readonly registry: ReplicaRegistry;
  readonly log: Log<'debug' | 'info' | 'warn' | 'error'>;
  /** Requests the configured health path from a replica. */
  readonly probeHealth: (target: ProbeTarget, timeoutMs: number) => Promise<ProbeResult>;
  /** Makes the share of turns of a new replica grow, if that is configured. */
  readonly beginRamp: (name: string) => void;
  /** Sends what the registry knows to every worker. Resolves once no worker uses anything older. */
  readonly publish: () => Promise<void>;
}

/** How long a start or a reload waits for name servers, and then for replicas to list their models. */
const PATIENCE_MS = 2_000;

/** How long a replica may take to answer a probe: longer than a busy engine needs. */
const PROBE_TIMEOUT_MS = 5_000;

/** How soon a replica is probed again that does not answer, or whose models or engine are unknown. */
const RETRY_MS = 2_000;
/** How many of them are probed each time: a thousand dead replicas must not take the time of requests. */
const MAX_RETRIES = 64;

/**
 * Finds the replicas: those of the configuration, and those behind the names in it. It resolves the names and probes
 * the replicas for their models again and again, hears from Kubernetes, and publishes one change after another. Drained
 * replicas are not probed.
 */
export class ReplicaDiscovery {
  readonly #collaborators: DiscoveryCollaborators;
  readonly #endpoints: ServiceEndpoints;
  readonly #prober: ReplicaProber;
  #servers: Servers;
  #intervals: Config['discovery'];
  /** Whether the registry knows something that was not published. */
  #hasNews = true;
  /** Changes begin when the one before has ended. */
  readonly #inTurn = createInTurn();
  #polls: readonly Poll[] = [];
  /** The urls of the replicas that were left out at the last update, because their name was taken. */
  #leftOut: ReadonlySet<string> = new Set();
  /** Pods and addresses that there was no room for at the last update. */
  #excess = 0;
  #lastFailure: string | null = null;
  #hasStarted = false;
  /** Whether a change that Kubernetes has told waits for its turn. */
  #isChangeAwaited = false;
  #isStopped = false;
  #nextRetry = 0;

  constructor(settings: DiscoverySettings, collaborators: DiscoveryCollaborators) {
    this.#servers = splitServers(settings.replicas);
    this.#intervals = settings.discovery;
    this.#collaborators = collaborators;
    this.#endpoints = new ServiceEndpoints({
      ...collaborators,
      checkPod: createPodCheck({
        connectMs: () => collaborators.registry.connectMs,
        probeHealth: collaborators.probeHealth,
      }),
      onChange: () => void this.#takeChange(),
    });
    this.#prober = new ReplicaProber(PROBE_TIMEOUT_MS, {
      probeHealth: collaborators.probeHealth,
      log: new ReachabilityLog(collaborators.log),
      onLearned: () => {
        this.#hasNews = true;
      },
    });
  }

  /** Finds what it can in a few seconds. The rest is published when it is found. */
  async start(): Promise<void> {
    // Before names are resolved, so that the admin API can drain the replicas of the file.
    await this.#update();
    await this.#endpoints.find(this.#servers.services, PATIENCE_MS);
    this.#hasStarted = true;
    // The admin API can also reload, so the settings may have changed.
    await this.#update();
    this.#startPolls();
  }

  /**
   * Takes over another configuration. Resolves when every worker uses it: none sends a request to a replica that was
   * removed. Rejects with a TooManyReplicasError, and then changes nothing.
   */
  async configure(settings: DiscoverySettings): Promise<ReplicaChanges> {
    const servers = splitServers(settings.replicas);
    await this.#endpoints.find(servers.services, PATIENCE_MS);
    try {
      const changes = await this.#update({ servers });
      // Otherwise reloads that come sooner than a poll would put it off for ever.
      if (!isDeepStrictEqual(settings.discovery, this.#intervals)) {
        this.#intervals = settings.discovery;
        this.#startPolls();
      }
      return changes;
    } finally {
      this.#endpoints.keepOnly(this.#servers.services);
    }
  }

  /**
   * Probes one replica for its models if they are not configured, for at most a few seconds, even a drained one: it is
   * about to be undrained.
   */
  async refresh(replica: RegisteredReplica): Promise<void> {
    if (!isAwaited(replica)) return;
    await waitAtMost(PATIENCE_MS, this.#prober.ask([replica]));
    await this.#inTurn(() => this.#publishNews());
  }

  /** Publishes what the registry knows, because something has changed that is not of the configuration. */
  async republish(): Promise<void> {
    this.#hasNews = true;
    await this.#inTurn(() => this.#publishNews());
  }

  /** Whether Kubernetes or DNS answers for each service. */
  get sources(): readonly SourceState[] {
    return this.#endpoints.statesOf(this.#servers.services);
  }

  /** The uids of the pods with all of these labels (`key=value`) beside those of the services. Never rejects. */
  listPods(labels: readonly string[]): Promise<ListedPodUids> {
    return this.#endpoints.listPods(this.#servers.services, labels);
  }

  stop(): void {
    this.#isStopped = true;
    this.#endpoints.stop();
    this.#prober.stop();
    for (const poll of this.#polls) poll.stop();
  }

  #startPolls(): void {
    for (const poll of this.#polls) poll.stop();
    if (this.#isStopped) return;
    const { modelsIntervalMs, dnsIntervalMs } = this.#intervals;
    this.#polls = [
      startPoll(() => this.#pollEndpoints(), dnsIntervalMs),
      startPoll(() => this.#pollModels(this.#undrained()), modelsIntervalMs),
      startPoll(() => this.#pollModels(this.#takeUrgent()), RETRY_MS),
    ];
  }

  async #pollEndpoints(): Promise<void> {
    if (this.#servers.services.length === 0) return;
    await this.#endpoints.find(this.#servers.services, PATIENCE_MS);
    await this.#orLog(() => this.#updateAndLog({}));
  }

  /**
   * Takes over what Kubernetes has told: a pod that terminates must get no request, whatever else is under way. All that
   * it has told before the turn comes is one change.
   */
  async #takeChange(): Promise<void> {
    if (!this.#hasStarted || this.#isStopped || this.#isChangeAwaited) return;
    this.#isChangeAwaited = true;
    await this.#inTurn(() => setImmediate());
    this.#isChangeAwaited = false;
    await this.#orLog(() => this.#updateAndLog({ publishesAtOnce: true }));
  }

  async #updateAndLog(options: UpdateOptions): Promise<void> {
    const changes = await this.#update(options);
    if (isChange(changes)) this.#collaborators.log.info(changes, 'replicas changed');
  }

  async #pollModels(replicas: readonly RegisteredReplica[]): Promise<void> {
    await this.#prober.ask(replicas);
    await this.#orLog(() => this.#inTurn(() => this.#publishNews()));
  }

  #undrained(): readonly RegisteredReplica[] {
    return this.#collaborators.registry.replicas.filter(({ drain }) => !drain.drained);
  }

  /** Those that are probed again soon, in turn. */
  #takeUrgent(): readonly RegisteredReplica[] {
    const urgent = this.#undrained().filter(isUrgent);
    const start = this.#nextRetry % Math.max(1, urgent.length);
    this.#nextRetry = start + MAX_RETRIES;
    return [...urgent.slice(start), ...urgent.slice(0, start)].slice(0, MAX_RETRIES);
  }

  /**
   * Registers the replicas that are configured and found, and probes the new ones before it publishes them. The turn is
   * free while it waits for them.
   */
  async #update({ servers, publishesAtOnce = false }: UpdateOptions = {}): Promise<ReplicaChanges> {
    const changes = await this.#inTurn(async () => {
      const done = this.#register(servers ?? this.#servers);
      // Another order of the replicas is not among the changes.
      this.#hasNews ||= servers !== undefined || isChange(done);
      this.#servers = servers ?? this.#servers;
      if (publishesAtOnce) await this.#publishNews();
      return done;
    });
    const names = new Set([...changes.added, ...changes.changed]);
    const fresh = this.#undrained().filter(({ name }) => names.has(name));
    // Whether the others answer is found out meanwhile.
    void this.#prober.ask(fresh.filter((replica) => !isAwaited(replica)));
    await waitAtMost(PATIENCE_MS, this.#prober.ask(fresh.filter(isAwaited)));
    await this.#inTurn(() => this.#publishNews());
    return changes;
  }

  #register({ replicas: configured, services }: Servers): ReplicaChanges {
    const { registry, log, beginRamp } = this.#collaborators;
    const found = services.flatMap((service) =>
      expandService(service, this.#endpoints.endpointsOf(service) ?? []),
    );
    const { replicas: merged, leftOut } = mergeReplicas([...configured, ...found]);
    const replicas = registry.takeFitting(merged, new Set(found));
    this.#noteExcess(merged.length - replicas.length);
    for (const { name, url } of leftOut) {
      if (!this.#leftOut.has(url)) log.warn({ replica: name, url }, 'replica left out: its name is taken');
    }
    this.#leftOut = new Set(leftOut.map(({ url }) => url));
    const isComplete = this.#endpoints.areAllKnown(services);
    const changes = registry.configure(replicas, new Date().toISOString(), { isComplete });
    const fresh = new Set([...changes.added, ...changes.changed]);
    const passed = replicas.filter((each) => fresh.has(each.name) && this.#endpoints.hasPassedGate(each));
    // Before they are published, so that no thread gives them a turn too many.
    for (const { name } of passed) beginRamp(name);
    return changes;
  }

  /** Says once how many pods there is no room for, and when there is again. */
  #noteExcess(count: number): void {
    const { log } = this.#collaborators;
    if (count > 0 && this.#excess === 0)
      log.warn({ left_out: count, limit: MAX_REPLICAS }, 'too many replicas');
    if (count === 0 && this.#excess > 0) log.info({ limit: MAX_REPLICAS }, 'room for all replicas again');
    this.#excess = count;
  }

  async #publishNews(): Promise<void> {
    if (!this.#hasNews || this.#isStopped) return;
    this.#hasNews = false;
    try {
      await this.#collaborators.publish();
    } catch (error) {
      this.#hasNews = true;
      throw error;
    }
  }

  /** Logs a failure, unless the last time failed in the same way. */
  async #orLog(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#lastFailure = null;
    } catch (error) {
      if (String(error) !== this.#lastFailure) {
        this.#collaborators.log.error({ err: error }, 'replicas not changed');
      }
      this.#lastFailure = String(error);
    }
  }
}

/** Whether a probe can tell which requests a replica takes and how they must be made. */
function isAwaited({ config: { models, engine } }: RegisteredReplica): boolean {
  return models === 'auto' || engine === 'auto' || engine === 'vllm';
}

/** Whether a replica is probed again soon. */
function isUrgent({ isFullyKnown, reachability }: RegisteredReplica): boolean {
  return !isFullyKnown || reachability.state !== 'reachable';
}

/** `servers`: those to take over. `publishesAtOnce`: before the new replicas are probed. */
interface UpdateOptions {
  readonly servers?: Servers;
  readonly publishesAtOnce?: boolean;
}

function isChange({ added, changed, removed }: ReplicaChanges): boolean {
  return added.length + changed.length + removed.length > 0;
}
