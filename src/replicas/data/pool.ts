import { isDeepStrictEqual } from 'node:util';
import type { HealthSettings } from '#replicas/health-state';
import {
  decideWhyNone,
  groupByModel,
  listModels,
  onlyModelOf,
  POLICIES,
  PrefixPopularity,
} from '#replicas/routing';
import { CURSORS } from '#replicas/shared';
import {
  isCalledAs,
  mayRead,
  type ResponseOrigin,
  type ResponseReader,
  type StoredResponses,
} from '#replicas/stored-responses';
import type { PoolSnapshot } from '#replicas/terms';
import type { ConnectionTimeouts } from './connections.ts';
import { Lease, type NoLease } from './lease.ts';
import type { PickContext } from './open-candidates.ts';
import { Replica, type ReplicaCollaborators } from './replica.ts';
import { ROUTE_HOME, Rotation } from './rotation.ts';
import { SilenceSampler } from './silence-sampler.ts';
import { type Wait, WaitQueue } from './wait-queue.ts';

export interface PoolSettings {
  readonly policy: keyof typeof POLICIES;
  /** Requests that may wait for a replica with room, in all threads. */
  readonly queueCapacity: number;
  readonly health: HealthSettings;
  readonly timeouts: ConnectionTimeouts;
}

export interface PoolCollaborators extends ReplicaCollaborators {
  readonly storedResponses: StoredResponses;
}

/** A response that an engine keeps. */
export interface KnownResponse {
  /** The replica that has it; null: it is gone. */
  readonly home: Replica | null;
  /** Whether the client called the model that made it by this name. */
  isCalledAs(name: string): boolean;
}

/** The replicas as one thread serves them. Empty until the first snapshot is applied. */
export class ReplicaPool {
  #settings: PoolSettings;
  readonly #collaborators: ReplicaCollaborators;
  readonly #storedResponses: StoredResponses;
  readonly #waitQueue: WaitQueue;
  readonly #silences: SilenceSampler;
  #snapshot: PoolSnapshot = { version: 0, replicas: [], isComplete: true, cursors: new Map() };
  #bySlot: ReadonlyMap<number, Replica> = new Map();
  #bySeed: ReadonlyMap<number, Replica | null> = new Map();
  /** Removed replicas that may still have requests in flight here. */
  readonly #leaving = new Set<Replica>();
  /** One rotation for each known model. Unknown names share `#rotationOfUnknown`, so that they cost no memory. */
  #rotations: ReadonlyMap<string, Rotation> = new Map();
  #rotationOfUnknown: Rotation;
  #rotationOfAll: Rotation;
  #shadowsByModel: ReadonlyMap<string, readonly Replica[]> = new Map();
  #isAnyListKnown = false;
  #models: readonly string[] = [];
  #onlyModel: string | null = null;

  constructor(settings: PoolSettings, { storedResponses, ...collaborators }: PoolCollaborators) {
    this.#storedResponses = storedResponses;
    const { shared, worker } = collaborators;
    this.#settings = settings;
    this.#collaborators = collaborators;
    shared.health.configure(settings.health);
    this.#waitQueue = new WaitQueue({
      table: shared.waiting,
      worker,
      rotationOf: (model) => this.#rotationOf(model),
      acquireFrom: (rotation, context) => this.#acquireFrom(rotation, context),
    });
    this.#rotationOfUnknown = this.#toRotation([], CURSORS.unknownModels, undefined);
    this.#rotationOfAll = this.#toRotationOfAll([]);
    this.#silences = new SilenceSampler({
      shared,
      worker,
      clock: collaborators.clock,
      replicas: () => this.#sampled(),
    });
    this.#silences.configure(settings.health.frozenAfterMs);
  }

  /**
   * Takes over which replicas there are and what they serve. Replicas that stay keep their connections; removed ones
   * finish their requests. Cursors keep their positions.
   */
  apply(snapshot: PoolSnapshot): void {
    this.#snapshot = snapshot;
    const previous = this.#bySlot;
    const replicas = snapshot.replicas.map((replicaSnapshot) => {
      const known = previous.get(replicaSnapshot.slot);
      known?.update(replicaSnapshot);
      return known ?? new Replica(replicaSnapshot, this.#settings.timeouts, this.#collaborators);
    });
    this.#bySlot = new Map(replicas.map((replica) => [replica.slot, replica]));
    const shadows = replicas.filter(({ shadow }) => shadow !== null);
    const serving = shadows.length === 0 ? replicas : replicas.filter(({ shadow }) => shadow === null);
    this.#shadowsByModel = groupByModel(shadows).byModel;
    this.#bySeed = bySeed(serving);
    for (const [slot, replica] of previous) {
      if (this.#bySlot.has(slot)) continue;
      replica.retire();
      this.#leaving.add(replica);
    }

    this.#isAnyListKnown = serving.some(({ models }) => models !== null);
    this.#models = listModels(serving);
    this.#onlyModel = onlyModelOf(serving);
    const { byModel, ofUnknown } = groupByModel(serving);
    const present = this.#rotations;
    this.#rotations = new Map(
      [...snapshot.cursors].map(([model, cursor]) => [
        model,
        this.#toRotation(byModel.get(model) ?? [], cursor, present.get(model)),
      ]),
    );
    this.#rotationOfUnknown = this.#toRotation(ofUnknown, CURSORS.unknownModels, this.#rotationOfUnknown);
    this.#rotationOfAll = this.#toRotationOfAll(serving);
    this.#waitQueue.regroup();
  }

  /** Uses these settings from now on. */
  configure(settings: PoolSettings): void {
    const { timeouts, health } = settings;
    const areSameTimeouts = isDeepStrictEqual(timeouts, this.#settings.timeouts);
    this.#settings = settings;
    this.#collaborators.shared.health.configure(health);
    this.#silences.configure(health.frozenAfterMs);
    if (!areSameTimeouts) for (const replica of this.#bySlot.values()) replica.reconnect(timeouts);
    this.apply(this.#snapshot);
  }

  /** Whether `acquire` needs the prefix key of a request. */
  get choosesByPrefix(): boolean {
    return this.#settings.policy === 'prefix_affinity';
  }

  /** Whether a replica that may serve a model may take a member's name in another case for its own. */
  mayFoldCase(model: string): boolean {
    return this.#rotationOf(model).mayFoldCase;
  }

  /**
   * The beginning of a request's text that decides where it goes; null if it has none. Call it once for each request: it
   * counts them.
   */
  matchPrefix(model: string, prefixHashes: readonly string[]): ReturnType<PrefixPopularity['match']> {
    const { popularity, candidates } = this.#rotationOf(model);
    return popularity.match(prefixHashes, candidates.length);
  }

  /** Notes that a request with this prefix is sent to a replica. */
  notePrefixSent(model: string, match: Parameters<PrefixPopularity['noteSent']>[0], { seed }: Replica): void {
    this.#rotationOf(model).popularity.noteSent(match, seed);
  }

  /**
   * A lease on a replica that serves `model`, is not drained and was not tried. `busy`: all such replicas are at their
   * `max_inflight`, so `waitFor` one of them.
   */
  acquire(
    model: string,
    tried: ReadonlySet<Replica>,
    prefixKey: number | null = null,
  ): Lease | NoLease | 'busy' {
    return this.#acquireFrom(this.#rotationOf(model), { tried, prefixKey, ticket: null });
  }

  /** The shadows that get copies of the requests of a model. */
  shadowsOf(model: string): readonly Replica[] {
    return this.#shadowsByModel.get(model) ?? NO_REPLICAS;
  }

  /** A lease on a shadow, for a copy; null: it gets none now, or has so many in flight. */
  acquireCopy(replica: Replica, limit: number): Lease | null {
    const { shadow } = replica;
    if (shadow === null || (replica.isDrained && !shadow.ignoresDrain)) return null;
    return replica.tryBeginCopy(limit) ? new Lease(replica, ROUTE_HOME) : null;
  }

  /** How many requests wait for a replica with room, in all threads. */
  get waitingCount(): number {
    return this.#collaborators.shared.waiting.count;
  }

  /** Notes that the response with this id was made at a replica. Engines that keep responses keep them for themselves. */
  noteResponse(id: string, { seed }: Replica, origin: Omit<ResponseOrigin, 'seed'>): void {
    this.#storedResponses.note(id, { seed, ...origin });
  }

  /** The response with this id; null if it is not known, or not the reader's. Without a reader it may be anyone's. */
  findResponse(id: string, reader: ResponseReader | null): KnownResponse | null {
    const found = this.#storedResponses.find(id);
    if (found === null || (reader !== null && !mayRead(found, id, reader))) return null;
    return {
      home: this.#bySeed.get(found.seed) ?? null,
      isCalledAs: (name) => isCalledAs(found, name),
    };
  }

  /**
   * A lease on this replica, if it serves `model` (null: whatever it serves), is not drained and was not tried; else
   * null. `busy`: it is at its `max_inflight`, so `waitForOne`.
   */
  acquireOne(replica: Replica, model: string | null, tried: ReadonlySet<Replica>): Lease | 'busy' | null {
    const rotation = model === null ? this.#rotationOfAll : this.#rotationOf(model);
    const picked = rotation.pickOne(replica, { tried, prefixKey: null, ticket: null });
    return picked instanceof Replica ? new Lease(picked, ROUTE_HOME) : picked;
  }

  /** Waits for a lease on this replica, at most `timeoutMs`. `overloaded`: the wait queue is full. */
  waitForOne(replica: Replica, model: string, timeoutMs: number): Wait | 'overloaded' {
    // Not a list of the others: further ones may come during the wait.
    const tried = { has: (other: Replica) => other !== replica, size: 1 };
    return this.waitFor(model, { tried, prefixKey: null, isForOne: true }, timeoutMs);
  }

  /** Waits for a lease, at most `timeoutMs`. `overloaded`: the wait queue is full. */
  waitFor(model: string, context: Omit<PickContext, 'ticket'>, timeoutMs: number): Wait | 'overloaded' {
    return this.#waitQueue.wait(model, context, { capacity: this.#settings.queueCapacity, timeoutMs });
  }

  /** A lease on the next replica, whatever it serves: for GET /v1/models. `max_inflight` does not hold for it. */
  acquireAny(tried: ReadonlySet<Replica>): Lease | NoLease {
    const picked = this.#rotationOfAll.pick({ tried, prefixKey: null, ticket: null });
    return picked ?? this.#whyNone(this.#rotationOfAll, tried);
  }

  /** What a stream of this model is to `SilenceLimits`. */
  streamKindOf(model: string): number {
    return this.#snapshot.cursors.get(model) ?? CURSORS.unknownModels;
  }

  /** The models that replicas are known to serve, each once, in the order of the replicas. */
  get models(): readonly string[] {
    return this.#models;
  }

  /** The model of a request that names none; null if that is not certain. */
  get onlyModel(): string | null {
    return this.#onlyModel;
  }

  /** Whether some replica may serve a model. */
  servesModel(model: string): boolean {
    return this.#rotationOf(model).candidates.length > 0;
  }

  /** Destroys every connection to every replica. */
  close(): void {
    this.#silences.stop();
    for (const replica of this.#bySlot.values()) replica.upstream.destroy();
  }

  /** Those whose streams are looked at: what runs on a removed replica still holds places in limits. */
  #sampled(): readonly Replica[] {
    for (const replica of this.#leaving) {
      if (this.#bySlot.has(replica.slot) || !replica.isBusy) this.#leaving.delete(replica);
    }
    return [...this.#bySlot.values(), ...this.#leaving];
  }

  #acquireFrom(rotation: Rotation, context: PickContext): Lease | NoLease | 'busy' {
    const picked = rotation.pick(context);
    if (picked !== null) return picked;
    return rotation.hasUntried(context.tried) ? 'busy' : this.#whyNone(rotation, context.tried);
  }

  #whyNone({ candidates }: Rotation, tried: PickContext['tried']): NoLease {
    return decideWhyNone({
      candidateCount: candidates.length,
      triedCount: tried.size,
      isComplete: this.#snapshot.isComplete,
      isAnyListKnown: this.#isAnyListKnown,
      mayBeServed: candidates.some(({ models, hasAnswered }) => models !== null || hasAnswered),
    });
  }

  #rotationOf(model: string): Rotation {
    return this.#rotations.get(model) ?? this.#rotationOfUnknown;
  }

  /** The popularity of prefixes is kept when other replicas serve the model. */
  #toRotation(candidates: readonly Replica[], cursor: number, previous: Rotation | undefined): Rotation {
    const popularity = previous?.popularity ?? new PrefixPopularity();
    const settings = { cursor, popularity, policy: POLICIES[this.#settings.policy], isLimited: true };
    return new Rotation(candidates, settings, this.#collaborators.shared);
  }

  /** The model listing uses round robin, whatever the policy for requests. */
  #toRotationOfAll(replicas: readonly Replica[]): Rotation {
    const policy = POLICIES.round_robin;
    const settings = { cursor: CURSORS.all, popularity: new PrefixPopularity(), policy, isLimited: false };
    return new Rotation(replicas, settings, this.#collaborators.shared);
  }
}

const NO_REPLICAS: readonly Replica[] = [];

/** Two replicas with the same seed cannot be told apart by it. */
function bySeed(replicas: readonly Replica[]): ReadonlyMap<number, Replica | null> {
  const found = new Map<number, Replica | null>();
  for (const replica of replicas) found.set(replica.seed, found.has(replica.seed) ? null : replica);
  return found;
}
