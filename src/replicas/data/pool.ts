import { isDeepStrictEqual } from 'node:util';
import type { PoolSnapshot } from '../pool-snapshot.ts';
import { groupByModel } from '../replicas-by-model.ts';
import { POLICIES } from '../routing/policies.ts';
import { PrefixPopularity } from '../routing/prefix-popularity.ts';
import type { HealthSettings } from '../shared/health-table.ts';
import { CURSORS } from '../shared/shared-state.ts';
import { Lease, type NoLease } from './lease.ts';
import { Replica, type ReplicaCollaborators } from './replica.ts';
import { type Asked, Rotation } from './rotation.ts';
import { type Wait, WaitQueue } from './wait-queue.ts';

/** What a pool is given. */
export interface PoolCollaborators extends ReplicaCollaborators {
  readonly policy: keyof typeof POLICIES;
  /** Requests that may wait for a replica with room, in all threads. */
  readonly queueCapacity: number;
  /** Whether replicas that fail are tried last. */
  readonly health: HealthSettings;
}

/** The replicas as one thread serves them: whose turn it is, and the leases on them. Empty before a topology. */
export class ReplicaPool {
  #with: PoolCollaborators;
  readonly #line: WaitQueue;
  #topology: PoolSnapshot = { version: 0, replicas: [], isComplete: true, cursors: new Map() };
  #bySlot: ReadonlyMap<number, Replica> = new Map();
  /** One rotation a known model. Unknown names share the one behind `#rotationOfUnknown`: bounded. */
  #rotations: ReadonlyMap<string, Rotation> = new Map();
  #rotationOfUnknown: Rotation;
  #rotationOfAll: Rotation;

  constructor(surroundings: PoolCollaborators) {
    const { shared, worker, health } = surroundings;
    this.#with = surroundings;
    shared.health.configure(health);
    this.#line = new WaitQueue({
      ...{ board: shared.waiting, worker },
      rotationOf: (model) => this.#rotationOf(model),
      acquireFrom: (rotation, asked) => this.#acquireFrom(rotation, asked),
    });
    this.#rotationOfUnknown = this.#toRotation([], CURSORS.unknownModels, undefined);
    this.#rotationOfAll = this.#toRotationOfAll([]);
  }

  /**
   * Takes over which replicas there are and what they serve. Replicas that stay keep their connections, those that
   * went finish what they have in flight; turns go on from where they were.
   */
  apply(topology: PoolSnapshot): void {
    this.#topology = topology;
    const { replicas: facts, cursors } = topology;
    const previous = this.#bySlot;
    const replicas = facts.map((replicaFacts) => {
      const known = previous.get(replicaFacts.slot);
      known?.update(replicaFacts);
      return known ?? new Replica(replicaFacts, this.#with);
    });
    this.#bySlot = new Map(replicas.map((replica) => [replica.slot, replica]));
    for (const [slot, replica] of previous) if (!this.#bySlot.has(slot)) replica.retire();

    const { byModel, ofUnknown } = groupByModel(replicas);
    const present = this.#rotations;
    this.#rotations = new Map(
      [...cursors].map(([model, cursor]) => [
        model,
        this.#toRotation(byModel.get(model) ?? [], cursor, present.get(model)),
      ]),
    );
    this.#rotationOfUnknown = this.#toRotation(ofUnknown, CURSORS.unknownModels, this.#rotationOfUnknown);
    this.#rotationOfAll = this.#toRotationOfAll(replicas);
    this.#line.regroup();
  }

  /** Chooses, queues and connects in another way from now on. */
  configure(settings: Pick<PoolCollaborators, 'policy' | 'queueCapacity' | 'health' | 'timeouts'>): void {
    const { timeouts, health } = settings;
    this.#with.shared.health.configure(health);
    const areSameTimeouts = isDeepStrictEqual(timeouts, this.#with.timeouts);
    this.#with = { ...this.#with, ...settings };
    if (!areSameTimeouts) for (const replica of this.#bySlot.values()) replica.reconnect(timeouts);
    this.apply(this.#topology);
  }

  /** Whether the prefix hashes of a request must be known before its replica is chosen. */
  get choosesByPrefix(): boolean {
    return this.#with.policy === 'prefix_affinity';
  }

  /** What stands for the beginning of a request's text in the choice. To be asked once a request: it is counted. */
  prefixKeyOf(model: string, prefixHashes: readonly string[]): number | null {
    const { heat, candidates } = this.#rotationOf(model);
    return heat.keyOf(prefixHashes, candidates.length);
  }

  /**
   * A lease on a replica that serves `model`, is not drained and was not tried. `busy`: there are such replicas, all at
   * their `max_inflight`; then `waitFor` one of them.
   */
  acquire(
    model: string,
    tried: ReadonlySet<Replica>,
    prefixKey: number | null = null,
  ): Lease | NoLease | 'busy' {
    return this.#acquireFrom(this.#rotationOf(model), { tried, prefixKey, ticket: null });
  }

  /** Waits in line for a lease, for so long at most. `overloaded`: as many wait as may. */
  waitFor(
    model: string,
    asked: { readonly tried: ReadonlySet<Replica>; readonly prefixKey: number | null },
    timeoutMs: number,
  ): Wait | 'overloaded' {
    return this.#line.wait(model, asked, { capacity: this.#with.queueCapacity, timeoutMs });
  }

  /** A lease on the next replica in turn, whatever it serves: for GET /v1/models. No limit holds for it. */
  acquireAny(tried: ReadonlySet<Replica>): Lease | NoLease {
    const taken = this.#rotationOfAll.takeTurn({ tried, prefixKey: null, ticket: null });
    return taken === null ? this.#whyNone(this.#rotationOfAll, tried) : new Lease(taken);
  }

  /** Destroys every connection to every replica. */
  close(): void {
    for (const replica of this.#bySlot.values()) replica.upstream.destroy();
  }

  #acquireFrom(rotation: Rotation, asked: Asked): Lease | NoLease | 'busy' {
    const taken = rotation.takeTurn(asked);
    if (taken !== null) return new Lease(taken);
    return rotation.hasUntried(asked.tried) ? 'busy' : this.#whyNone(rotation, asked.tried);
  }

  #whyNone({ candidates }: Rotation, tried: ReadonlySet<Replica>): NoLease {
    if (candidates.length > 0) return tried.size > 0 ? 'no_replica_reachable' : 'all_replicas_drained';
    // A model that nobody serves may be served by those whose name is not resolved yet.
    return this.#topology.isComplete ? 'model_not_found' : 'no_replica_reachable';
  }

  #rotationOf(model: string): Rotation {
    return this.#rotations.get(model) ?? this.#rotationOfUnknown;
  }

  /** What is popular outlives a change of who serves the model. */
  #toRotation(candidates: readonly Replica[], cursor: number, previous: Rotation | undefined): Rotation {
    const { policy, shared } = this.#with;
    const heat = previous?.heat ?? new PrefixPopularity();
    return new Rotation(candidates, { cursor, heat, choose: POLICIES[policy], isLimited: true }, shared);
  }

  /** The model listing goes by turns, whatever requests go by. */
  #toRotationOfAll(replicas: readonly Replica[]): Rotation {
    const choose = POLICIES.round_robin;
    const settings = { cursor: CURSORS.all, heat: new PrefixPopularity(), choose, isLimited: false };
    return new Rotation(replicas, settings, this.#with.shared);
  }
}
