import { isDeepStrictEqual } from 'node:util';
import { Replica, type ReplicaSurroundings } from './replica.ts';
import { type Asked, Rotation } from './rotation.ts';
import { POLICIES } from './routing/policies.ts';
import { PrefixHeat } from './routing/prefix-heat.ts';
import { toServingSets } from './serving-sets.ts';
import { CURSORS } from './shared-state.ts';
import type { Topology } from './topology.ts';

/** One unit of `inflight` on a replica; given back exactly once, however often it is disposed. */
export class Lease implements Disposable {
  readonly replica: Replica;
  #isHeld = true;

  constructor(replica: Replica) {
    this.replica = replica;
    replica.begin();
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.replica.finish();
  }
}

/** Why there is no lease. */
export type NoLease = 'model_not_found' | 'all_replicas_drained' | 'no_replica_reachable';

/** What a pool is given. */
export interface PoolSurroundings extends ReplicaSurroundings {
  readonly policy: keyof typeof POLICIES;
}

/** The replicas as one thread serves them: whose turn it is, and the leases on them. Empty before a topology. */
export class ReplicaPool {
  #with: PoolSurroundings;
  #topology: Topology = { version: 0, replicas: [], isComplete: true, cursors: new Map() };
  #bySlot: ReadonlyMap<number, Replica> = new Map();
  /** One rotation a known model. Unknown names share the one behind `#rotationOfUnknown`: bounded. */
  #rotations: ReadonlyMap<string, Rotation> = new Map();
  #rotationOfUnknown: Rotation;
  #rotationOfAll: Rotation;

  constructor(surroundings: PoolSurroundings) {
    this.#with = surroundings;
    this.#rotationOfUnknown = this.#toRotation([], CURSORS.unknownModels, undefined);
    this.#rotationOfAll = this.#toRotationOfAll([]);
  }

  /**
   * Takes over which replicas there are and what they serve. Replicas that stay keep their connections, those that
   * went finish what they have in flight; turns go on from where they were.
   */
  apply(topology: Topology): void {
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

    const { byModel, ofUnknown } = toServingSets(replicas);
    const present = this.#rotations;
    this.#rotations = new Map(
      [...cursors].map(([model, cursor]) => [
        model,
        this.#toRotation(byModel.get(model) ?? [], cursor, present.get(model)),
      ]),
    );
    this.#rotationOfUnknown = this.#toRotation(ofUnknown, CURSORS.unknownModels, this.#rotationOfUnknown);
    this.#rotationOfAll = this.#toRotationOfAll(replicas);
  }

  /** Chooses and connects in another way from now on. */
  configure({ policy, timeouts }: Pick<PoolSurroundings, 'policy' | 'timeouts'>): void {
    const areSameTimeouts = isDeepStrictEqual(timeouts, this.#with.timeouts);
    this.#with = { ...this.#with, policy, timeouts };
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

  /** A lease on a replica that serves `model`, is not drained and was not tried. */
  acquire(model: string, tried: ReadonlySet<Replica>, prefixKey: number | null = null): Lease | NoLease {
    return this.#orNotReached(acquireFrom(this.#rotationOf(model), { tried, prefixKey }));
  }

  /** A lease on the next replica in turn, whatever it serves: for GET /v1/models. */
  acquireAny(tried: ReadonlySet<Replica>): Lease | NoLease {
    return this.#orNotReached(acquireFrom(this.#rotationOfAll, { tried, prefixKey: null }));
  }

  /** A model that nobody serves may be served by those whose name is not resolved yet. */
  #orNotReached(lease: Lease | NoLease): Lease | NoLease {
    return lease === 'model_not_found' && !this.#topology.isComplete ? 'no_replica_reachable' : lease;
  }

  /** Destroys every connection to every replica. */
  async close(): Promise<void> {
    await Promise.all([...this.#bySlot.values()].map((replica) => replica.connections.close()));
  }

  #rotationOf(model: string): Rotation {
    return this.#rotations.get(model) ?? this.#rotationOfUnknown;
  }

  /** What is popular outlives a change of who serves the model. */
  #toRotation(candidates: readonly Replica[], cursor: number, previous: Rotation | undefined): Rotation {
    const { policy, shared } = this.#with;
    const heat = previous?.heat ?? new PrefixHeat();
    return new Rotation(candidates, { cursor, heat, choose: POLICIES[policy] }, shared);
  }

  /** The model listing goes by turns, whatever requests go by. */
  #toRotationOfAll(replicas: readonly Replica[]): Rotation {
    const settings = { cursor: CURSORS.all, heat: new PrefixHeat(), choose: POLICIES.round_robin };
    return new Rotation(replicas, settings, this.#with.shared);
  }
}

function acquireFrom(rotation: Rotation, asked: Asked): Lease | NoLease {
  if (rotation.candidates.length === 0) return 'model_not_found';
  const replica = rotation.takeTurn(asked);
  if (replica !== null) return new Lease(replica);
  return asked.tried.size > 0 ? 'no_replica_reachable' : 'all_replicas_drained';
}
