import { isDeepStrictEqual } from 'node:util';
import { MAX_REPLICAS } from '#replicas/shared';
import {
  addBackground,
  type BackgroundCount,
  NO_BACKGROUND,
  type PoolSnapshot,
  type ReplicaConfig,
} from '#replicas/terms';
import { CursorAllocator } from './cursor-allocator.ts';
import { RegisteredReplica, type RegistryCollaborators } from './registered-replica.ts';

/** How long it is known that a name was removed, and of how many. */
const REMEMBERED_MS = 600_000;
const MAX_REMEMBERED = 2 * MAX_REPLICAS;

/** A removed replica, and the version of the first snapshot without it. */
interface Retired {
  readonly replica: RegisteredReplica;
  readonly removedIn: number;
}

/** There is no room for all wanted replicas. `message` is one line for the operator. */
export class TooManyReplicasError extends Error {
  constructor() {
    super(`more than ${MAX_REPLICAS} replicas, including removed ones that finish their requests`);
    this.name = 'TooManyReplicasError';
  }
}

/** The names of the replicas that a configuration has changed. */
export interface ReplicaChanges {
  readonly added: readonly string[];
  /** Includes names that moved to another server. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The replicas of the control plane: their configuration, what is known of them, and their slots and cursors in shared
 * memory. Workers learn of changes through snapshots.
 */
export class ReplicaRegistry {
  readonly #collaborators: RegistryCollaborators;
  readonly #cursors: CursorAllocator;
  #replicas: readonly RegisteredReplica[] = [];
  #isComplete = true;
  #retired: Retired[] = [];
  /** When names were removed, the oldest first: monotonic milliseconds. */
  readonly #removedAtMs = new Map<string, number>();
  #freeSlots = Array.from({ length: MAX_REPLICAS }, (_, index) => MAX_REPLICAS - 1 - index);
  #version = 0;
  #connectMs: number;

  /** @param connectMs how long a connection for the gateway's own probes may take to open */
  constructor(collaborators: RegistryCollaborators, connectMs: number) {
    this.#collaborators = collaborators;
    this.#connectMs = connectMs;
    this.#cursors = new CursorAllocator(collaborators.shared);
  }

  get connectMs(): number {
    return this.#connectMs;
  }

  /** Gives the connections for probes so long to open from now on. */
  connectWithin(connectMs: number): void {
    if (connectMs === this.#connectMs) return;
    this.#connectMs = connectMs;
    for (const replica of this.#replicas) replica.reconnect(connectMs);
  }

  /** In configured order. */
  get replicas(): readonly RegisteredReplica[] {
    return this.#replicas;
  }

  /** Those of them that serve clients: no shadows. */
  get serving(): readonly RegisteredReplica[] {
    return this.#replicas.filter(({ shadow }) => shadow === null);
  }

  /** The configured replicas, followed by the removed ones that still finish requests. */
  get all(): readonly RegisteredReplica[] {
    return [...this.#replicas, ...this.#retired.map(({ replica }) => replica).filter(isPresent)];
  }

  /** Requests that wait because all replicas of their model are at their `max_inflight`, in all workers. */
  get waiting(): number {
    return this.#collaborators.shared.waiting.count;
  }

  /** The silent streams that hold places in limits: by the row of the limit, how many run on which replica. */
  silentHolders(): ReadonlyMap<number, ReadonlyMap<string, number>> {
    const nameOf = new Map(this.all.map(({ slot, name }) => [slot, name]));
    const holders = new Map<number, Map<string, number>>();
    for (const { row, slot, count } of this.#collaborators.shared.silentHolders.read()) {
      const name = nameOf.get(slot);
      if (name === undefined) continue;
      const ofRow = holders.get(row) ?? new Map<string, number>();
      holders.set(row, ofRow.set(name, (ofRow.get(name) ?? 0) + count));
    }
    return holders;
  }

  find(name: string): RegisteredReplica | undefined {
    return this.#replicas.find((replica) => replica.name === name);
  }

  /** The replica of this name, or one that is being removed. */
  findAny(name: string): RegisteredReplica | undefined {
    return this.all.find((replica) => replica.name === name);
  }

  /** Whether a replica of this name was removed in the last ten minutes: other gateways may still serve it. */
  hasRemoved(name: string): boolean {
    const atMs = this.#removedAtMs.get(name);
    return atMs !== undefined && performance.now() - atMs < REMEMBERED_MS;
  }

  /**
   * Takes over the wanted replicas, at a time in RFC 3339. A replica whose name and server stay the same keeps what is
   * known of it; drain states belong to names. Throws a TooManyReplicasError, and changes nothing, if removed replicas
   * that are still busy leave too little room. `isComplete`: whether the names of all services are resolved.
   */
  configure(configs: readonly ReplicaConfig[], at: string, { isComplete = true } = {}): ReplicaChanges {
    const { steps, removed } = diffReplicas(
      this.#replicas.map(({ config }) => config),
      configs,
    );
    this.#releaseSlots();
    if (steps.filter(isNew).length > this.#freeSlots.length) throw new TooManyReplicasError();
    this.#isComplete = isComplete;
    const present = new Map(this.#replicas.map((replica) => [replica.name, replica]));
    this.#replicas = steps.map((step) => {
      const known = isNew(step) ? undefined : present.get(step.config.name);
      if (known === undefined) return this.#add(step.config);
      known.configure(step.config);
      return known;
    });
    const kept = new Set(this.#replicas);
    for (const replica of present.values()) if (!kept.has(replica)) this.#retire(replica, at);
    const namesOf = (...actions: readonly ReplicaDiffStep['action'][]) =>
      steps.filter(({ action }) => actions.includes(action)).map(({ config }) => config.name);
    return { added: namesOf('add'), changed: namesOf('configure', 'replace'), removed };
  }

  /**
   * These without the new ones among `optional` that there is no room for, because of all others and of removed replicas
   * that are still busy.
   */
  takeFitting(
    configs: readonly ReplicaConfig[],
    optional: ReadonlySet<ReplicaConfig>,
  ): readonly ReplicaConfig[] {
    this.#releaseSlots();
    if (configs.length <= this.#freeSlots.length) return configs;
    const { steps } = diffReplicas(
      this.#replicas.map(({ config }) => config),
      configs,
    );
    const isOptional = (step: ReplicaDiffStep) => isNew(step) && optional.has(step.config);
    let room = this.#freeSlots.length - steps.filter((step) => isNew(step) && !isOptional(step)).length;
    return steps.filter((step) => !isOptional(step) || room-- > 0).map(({ config }) => config);
  }

  /** Requests in flight by name, including those on removed replicas; names without any are left out. */
  inflightByName(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name, inflight } of this.all) {
      if (inflight > 0) counts.set(name, (counts.get(name) ?? 0) + inflight);
    }
    return counts;
  }

  /** Responses that replicas go on with by name, likewise, and those of replicas that are not there at the moment. */
  backgroundByName(): ReadonlyMap<string, BackgroundCount> {
    const counts = new Map<string, BackgroundCount>();
    const add = (name: string, count: BackgroundCount) => {
      if (count.running + count.unknown > 0) {
        counts.set(name, addBackground(counts.get(name) ?? NO_BACKGROUND, count));
      }
    };
    const { shared, background } = this.#collaborators;
    // In this order, and by server: one that was removed and is back is there twice.
    for (const { name, slot } of this.all) add(name, { running: shared.handedOverOf(slot), unknown: 0 });
    for (const { name, count } of background.all) add(name, count);
    return counts;
  }

  /** The snapshot to publish to the workers. */
  nextSnapshot(): PoolSnapshot {
    this.#version++;
    return {
      version: this.#version,
      replicas: this.#replicas.map(({ slot, config, knowledge, shadow }) => ({
        slot,
        config,
        knowledge,
        shadow: shadow && { share: shadow.share, ignoresDrain: shadow.ignoresDrain },
      })),
      isComplete: this.#isComplete,
      cursors: this.#cursors.assign(this.serving),
    };
  }

  /**
   * Notes that every worker uses the snapshot of this version, so that none takes a lease on a replica that it leaves
   * out. Requests that hold such a lease and are not written yet move to another replica, as with a drain.
   */
  noteApplied(version: number): void {
    for (const { replica, removedIn } of this.#retired) if (removedIn <= version) replica.forget();
    this.#releaseSlots();
  }

  /** Destroys the connections for probes. */
  async close(): Promise<void> {
    const replicas = [...this.#replicas, ...this.#retired.map(({ replica }) => replica)];
    await Promise.all(replicas.map((replica) => replica.connections.destroy()));
  }

  #add(config: ReplicaConfig): RegisteredReplica {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new TooManyReplicasError();
    this.#collaborators.shared.clearSlot(slot);
    this.#collaborators.drains.bind(config.name, slot);
    return new RegisteredReplica(slot, config, this.#connectMs, this.#collaborators);
  }

  #retire(replica: RegisteredReplica, at: string): void {
    replica.remove(at);
    this.#noteRemoved(replica.name);
    this.#retired.push({ replica, removedIn: this.#version + 1 });
  }

  #noteRemoved(name: string): void {
    this.#removedAtMs.delete(name); // so that it becomes the last one
    this.#removedAtMs.set(name, performance.now());
    for (const oldest of this.#removedAtMs.keys()) {
      if (this.#removedAtMs.size <= MAX_REMEMBERED && this.hasRemoved(oldest)) break;
      this.#removedAtMs.delete(oldest);
    }
  }

  /** Frees the slots of removed replicas that have finished their requests. */
  #releaseSlots(): void {
    const retired = this.#retired;
    this.#retired = [];
    for (const each of retired) {
      const { replica } = each;
      if (isPresent(replica)) this.#retired.push(each);
      else {
        this.#freeSlots.push(replica.slot);
        void replica.connections.destroy();
      }
    }
  }
}

/** Whether a removed replica may still have requests in flight. */
function isPresent({ isSafeToStop }: RegisteredReplica): boolean {
  return isSafeToStop !== true;
}

/** Whether it needs a slot. */
function isNew({ action }: ReplicaDiffStep): boolean {
  return action === 'add' || action === 'replace';
}

/** What to do for one wanted replica. */
interface ReplicaDiffStep {
  readonly config: ReplicaConfig;
  /**
   * `add`: the name is new. `replace`: the name has moved to another server; requests in flight finish on the former
   * one. `configure`: the server is the same, other settings changed. `keep`: nothing changed.
   */
  readonly action: 'add' | 'replace' | 'configure' | 'keep';
}

/** How to get from the present replicas to the wanted ones. */
interface ReplicaDiff {
  /** One step for each wanted replica, in configured order. */
  readonly steps: readonly ReplicaDiffStep[];
  /** The names that are no longer wanted. */
  readonly removed: readonly string[];
}

/**
 * Compares two lists of replicas, each with unique names. The url, the TLS name and the id of the server, if it has one,
 * tell whether a server is the same.
 */
export function diffReplicas(
  present: readonly ReplicaConfig[],
  wanted: readonly ReplicaConfig[],
): ReplicaDiff {
  const byName = new Map(present.map((config) => [config.name, config]));
  const wantedNames = new Set(wanted.map(({ name }) => name));
  return {
    steps: wanted.map((config) => ({ config, action: decideAction(byName.get(config.name), config) })),
    removed: [...byName.keys()].filter((name) => !wantedNames.has(name)),
  };
}

function decideAction(present: ReplicaConfig | undefined, wanted: ReplicaConfig): ReplicaDiffStep['action'] {
  if (present === undefined) return 'add';
  if (present.url !== wanted.url || present.tlsName !== wanted.tlsName) return 'replace';
  if (present.serverId !== wanted.serverId) return 'replace';
  return isDeepStrictEqual(present, wanted) ? 'keep' : 'configure';
}
