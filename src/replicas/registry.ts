import type { Engine, ReplicaConfig } from '../config/config.ts';
import { type Connections, createConnections, pathPrefixOf } from './connections.ts';
import type { DrainState, Drains } from './drains.ts';
import { CURSORS, MAX_CURSORS, MAX_REPLICAS, type SharedState } from './shared-state.ts';
import type { ReplicaKnowledge, Topology } from './topology.ts';

/** What the registry works with. */
export interface RegistryCollaborators {
  readonly shared: SharedState;
  readonly drains: Drains;
  /** For the gateway's own probes. */
  readonly timeouts: { readonly connectMs: number; readonly upstreamKeepAliveMs: number };
}

/** One replica as the control plane knows it: what is configured, what was found out, and how it stands now. */
export class RegisteredReplica {
  readonly slot: number;
  readonly pathPrefix: string;
  /** The control plane's own, for probes: requests of clients go by those of the workers. */
  readonly connections: Connections;
  readonly #with: RegistryCollaborators;
  #config: ReplicaConfig;
  #found: ReplicaKnowledge = { models: null, engine: null };

  constructor(slot: number, config: ReplicaConfig, collaborators: RegistryCollaborators) {
    this.slot = slot;
    this.pathPrefix = pathPrefixOf(config.url);
    this.connections = createConnections(config.url, collaborators.timeouts);
    this.#with = collaborators;
    this.#config = config;
  }

  get name(): string {
    return this.#config.name;
  }

  get config(): ReplicaConfig {
    return this.#config;
  }

  /** What is configured, and what a probe found where that is `auto`. */
  get knowledge(): ReplicaKnowledge {
    const { models, engine } = this.#config;
    return {
      models: models === 'auto' ? this.#found.models : models,
      engine: engine === 'auto' ? this.#found.engine : engine,
    };
  }

  /** Null while the list is not known. */
  get models(): readonly string[] | null {
    return this.knowledge.models;
  }

  /** The engine whose wire habits apply; `openai` while it is not known. */
  get engine(): Engine {
    return this.knowledge.engine ?? 'openai';
  }

  /** Whether a probe of /v1/models could still tell something the configuration leaves open. */
  get isFullyKnown(): boolean {
    return this.models !== null && this.knowledge.engine !== null;
  }

  get drain(): DrainState {
    return this.#with.drains.stateOf(this.name);
  }

  /** Requests in flight on it, from all workers. */
  get inflight(): number {
    return this.#with.shared.inflightOf(this.slot);
  }

  /** Takes over what a probe found. */
  learn(found: ReplicaKnowledge): void {
    this.#found = found;
  }

  /** Takes over another configuration of the same replica. */
  configure(config: ReplicaConfig): void {
    this.#config = config;
  }
}

/** A slot whose replica was removed, and the first topology without it. */
interface RetiredSlot {
  readonly slot: number;
  readonly goneSince: number;
}

/**
 * The replicas of the control plane: which there are, what is known of them, and the slots and cursors that they
 * have in shared memory. What it says goes to the workers as topologies.
 */
export class ReplicaRegistry {
  readonly #with: RegistryCollaborators;
  #replicas: readonly RegisteredReplica[] = [];
  readonly #cursors = new Map<string, number>();
  #freeSlots = Array.from({ length: MAX_REPLICAS }, (_, index) => MAX_REPLICAS - 1 - index);
  #retiredSlots: readonly RetiredSlot[] = [];
  readonly #freeCursors = Array.from(
    { length: MAX_CURSORS - CURSORS.firstOfModels },
    (_, index) => MAX_CURSORS - 1 - index,
  );
  #version = 0;
  #appliedVersion = 0;

  constructor(collaborators: RegistryCollaborators) {
    this.#with = collaborators;
  }

  /** In configured order. */
  get replicas(): readonly RegisteredReplica[] {
    return this.#replicas;
  }

  find(name: string): RegisteredReplica | undefined {
    return this.#replicas.find((replica) => replica.name === name);
  }

  /**
   * Takes over the configured replicas. One with the name and the url of a present one is that one, and keeps what
   * is known of it; drains go by name.
   */
  configure(configs: readonly ReplicaConfig[]): void {
    const present = new Map(this.#replicas.map((replica) => [replica.name, replica]));
    const kept = new Set<RegisteredReplica>();
    this.#replicas = configs.map((config) => {
      const known = present.get(config.name);
      if (known === undefined || known.config.url !== config.url) return this.#add(config);
      known.configure(config);
      kept.add(known);
      return known;
    });
    for (const replica of present.values()) if (!kept.has(replica)) this.#retire(replica);
  }

  /** What the workers are to know from now on. */
  nextTopology(): Topology {
    this.#version++;
    this.#assignCursors();
    return {
      version: this.#version,
      replicas: this.#replicas.map(({ slot, config, knowledge }) => ({ slot, config, knowledge })),
      cursors: new Map(this.#cursors),
    };
  }

  /** Every worker goes by the topology of this version: none takes a lease on what it left out. */
  noteApplied(version: number): void {
    this.#appliedVersion = Math.max(this.#appliedVersion, version);
  }

  /** Destroys the connections of probes. */
  async close(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.connections.close()));
  }

  #add(config: ReplicaConfig): RegisteredReplica {
    const replica = new RegisteredReplica(this.#takeSlot(), config, this.#with);
    this.#with.drains.bind(config.name, replica.slot);
    return replica;
  }

  #retire(replica: RegisteredReplica): void {
    // Workers that have not heard of it yet skip it from now on.
    this.#with.shared.setDrained(replica.slot, true);
    if (this.find(replica.name) === undefined) this.#with.drains.unbind(replica.name);
    this.#retiredSlots = [...this.#retiredSlots, { slot: replica.slot, goneSince: this.#version + 1 }];
    void replica.connections.close();
  }

  /** Retired slots are looked through when one is needed: until then it does not matter that they are idle. */
  #takeSlot(): number {
    const { shared } = this.#with;
    const isIdle = ({ slot, goneSince }: RetiredSlot) =>
      goneSince <= this.#appliedVersion && shared.inflightOf(slot) === 0;
    const idle = this.#retiredSlots.filter(isIdle);
    this.#retiredSlots = this.#retiredSlots.filter((retired) => !idle.includes(retired));
    this.#freeSlots.push(...idle.map(({ slot }) => slot));
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new RangeError(`more than ${MAX_REPLICAS} replicas`);
    shared.clearSlot(slot);
    return slot;
  }

  /** A cursor for each model that is served; beyond what there is memory for, models share the one of unknown names. */
  #assignCursors(): void {
    const served = new Set(this.#replicas.flatMap(({ models }) => models ?? []));
    served.delete('*');
    for (const [model, cursor] of this.#cursors) {
      if (served.has(model)) continue;
      this.#cursors.delete(model);
      if (cursor !== CURSORS.unknownModels) this.#freeCursors.push(cursor);
    }
    for (const model of served) {
      if (!this.#cursors.has(model))
        this.#cursors.set(model, this.#freeCursors.pop() ?? CURSORS.unknownModels);
    }
  }
}
