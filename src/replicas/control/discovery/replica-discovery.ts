import type { Config } from '../../../config/config.ts';
import type { RegisteredReplica, ReplicaChanges, ReplicaRegistry } from '../registry.ts';
import { type Repeated, repeat } from '../repeat.ts';
import { waitAtMost } from '../wait-at-most.ts';
import { EndpointDiscovery, type EndpointLog } from './endpoint-discovery.ts';
import { expandService, mergeReplicas } from './expand-service.ts';
import { ModelDiscovery } from './model-discovery.ts';
import type { Resolver } from './resolver.ts';

/** What the configuration says of replicas, and how often the rest is looked up. */
export type DiscoverySettings = Pick<Config, 'replicas' | 'services' | 'discovery'>;

/** Where it is told that replicas came or went. A pino logger fits. */
export interface DiscoveryLog extends EndpointLog {
  error(fields: object, message: string): void;
}

/** Whom the roster works with. */
export interface DiscoveryCollaborators {
  readonly registry: ReplicaRegistry;
  readonly resolver: Resolver;
  readonly log: DiscoveryLog;
  /** Brings what the registry knows to every worker; resolves once none goes by anything older. */
  readonly publish: () => Promise<void>;
}

/** How long a start or a reload waits for name servers, and then for replicas to tell their models. */
const PATIENCE_MS = 2_000;

/** How soon a replica that could not tell what it serves is asked again. */
const RETRY_MS = 2_000;

/**
 * Says which replicas there are: those of the configuration, and those behind the names in it, which are resolved
 * again and again, as replicas are asked again and again what they serve. One change is brought to the workers after
 * the other; a drained replica is left in peace.
 */
export class ReplicaDiscovery {
  readonly #with: DiscoveryCollaborators;
  readonly #names: EndpointDiscovery;
  readonly #discovery: ModelDiscovery;
  #settings: DiscoverySettings;
  /** The registry knows something that the workers have not been told. */
  #hasNews = true;
  #lastTurn: Promise<unknown> = Promise.resolve();
  #repeated: readonly Repeated[] = [];
  /** The urls of those whose name was taken when that was told last. */
  #leftOut: ReadonlySet<string> = new Set();
  #lastFailure: string | null = null;
  #isStopped = false;

  constructor(settings: DiscoverySettings, collaborators: DiscoveryCollaborators) {
    this.#settings = settings;
    this.#with = collaborators;
    this.#names = new EndpointDiscovery(collaborators.resolver, collaborators.log);
    this.#discovery = new ModelDiscovery(PATIENCE_MS, () => {
      this.#hasNews = true;
    });
  }

  /** Finds out what it can for a few seconds; what is not known by then comes later. */
  async start(): Promise<void> {
    // Before names are resolved: whoever reaches the admin API can drain what the file names.
    await this.#inTurn(() => this.#update(this.#settings));
    await this.#names.resolve(this.#settings.services, PATIENCE_MS);
    // Whoever can drain can reload: the settings may be others by now.
    await this.#inTurn(() => this.#update(this.#settings));
    this.#repeatAll();
  }

  /**
   * Takes over another configuration. Resolves when every worker goes by it: none takes a request to a replica that
   * was removed. Rejects with a TooManyReplicasError, and changes nothing.
   */
  async configure(settings: DiscoverySettings): Promise<ReplicaChanges> {
    await this.#names.resolve(settings.services, PATIENCE_MS);
    const changes = await this.#inTurn(async () => {
      this.#hasNews = true; // the order of turns is no change of a replica
      const done = await this.#update(settings);
      this.#settings = settings;
      return done;
    });
    this.#repeatAll();
    return changes;
  }

  /** Asks one replica what it serves, drained or not: it is about to be used again. */
  async refresh(replica: RegisteredReplica): Promise<void> {
    await this.#discovery.ask([replica]);
    await this.#inTurn(() => this.#publishNews());
  }

  stop(): void {
    this.#isStopped = true;
    for (const each of this.#repeated) each.stop();
  }

  #repeatAll(): void {
    for (const each of this.#repeated) each.stop();
    if (this.#isStopped) return;
    const { modelsIntervalMs, dnsIntervalMs } = this.#settings.discovery;
    this.#repeated = [
      repeat(() => this.#followNames(), dnsIntervalMs),
      repeat(() => this.#learn(() => true), modelsIntervalMs),
      repeat(() => this.#learn(({ isFullyKnown }) => !isFullyKnown), RETRY_MS),
    ];
  }

  async #followNames(): Promise<void> {
    if (this.#settings.services.length === 0) return;
    await this.#names.resolve(this.#settings.services, PATIENCE_MS);
    await this.#orLog(async () => {
      const changes = await this.#inTurn(() => this.#update(this.#settings));
      if (isChange(changes)) this.#with.log.info(changes, 'replicas changed');
    });
  }

  async #learn(isAsked: (replica: RegisteredReplica) => boolean): Promise<void> {
    await this.#discovery.ask(this.#undrained().filter(isAsked));
    await this.#orLog(() => this.#inTurn(() => this.#publishNews()));
  }

  #undrained(): readonly RegisteredReplica[] {
    return this.#with.registry.replicas.filter(({ drain }) => !drain.drained);
  }

  /** Brings the replicas in line with what is configured and resolved; those that are new are asked before they serve. */
  async #update(settings: DiscoverySettings): Promise<ReplicaChanges> {
    const changes = this.#register(settings);
    this.#hasNews ||= isChange(changes);
    const names = new Set([...changes.added, ...changes.changed]);
    const asking = this.#discovery.ask(this.#undrained().filter(({ name }) => names.has(name)));
    await waitAtMost(PATIENCE_MS, asking);
    await this.#publishNews();
    return changes;
  }

  #register({ replicas: configured, services }: DiscoverySettings): ReplicaChanges {
    const { registry, log } = this.#with;
    const found = services.map((service) => {
      const endpoints = this.#names.endpointsOf(service);
      return endpoints === null ? null : expandService(service, endpoints);
    });
    const { replicas, leftOut } = mergeReplicas([...configured, ...found.flatMap((each) => each ?? [])]);
    for (const { name, url } of leftOut) {
      if (!this.#leftOut.has(url)) log.warn({ replica: name, url }, 'replica left out: its name is taken');
    }
    this.#leftOut = new Set(leftOut.map(({ url }) => url));
    return registry.configure(replicas, new Date().toISOString(), { isComplete: !found.includes(null) });
  }

  async #publishNews(): Promise<void> {
    if (!this.#hasNews || this.#isStopped) return;
    this.#hasNews = false;
    try {
      await this.#with.publish();
    } catch (error) {
      this.#hasNews = true;
      throw error;
    }
  }

  /** One change after the other. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(change);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** For work that nobody waits for: a line when it fails, not one for each time that it fails in the same way. */
  async #orLog(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#lastFailure = null;
    } catch (error) {
      if (String(error) !== this.#lastFailure) this.#with.log.error({ err: error }, 'replicas not changed');
      this.#lastFailure = String(error);
    }
  }
}

function isChange({ added, changed, removed }: ReplicaChanges): boolean {
  return added.length + changed.length + removed.length > 0;
}
