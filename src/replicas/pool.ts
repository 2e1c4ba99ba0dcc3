import { Replica, type ReplicaSurroundings } from './replica.ts';
import { Rotation } from './rotation.ts';
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

/** The replicas as one thread serves them: whose turn it is, and the leases on them. Empty before a topology. */
export class ReplicaPool {
  readonly #with: ReplicaSurroundings;
  #bySlot: ReadonlyMap<number, Replica> = new Map();
  /** One rotation a known model. Unknown names share the one behind `#rotationOfUnknown`: bounded. */
  #rotations: ReadonlyMap<string, Rotation> = new Map();
  #rotationOfUnknown: Rotation;
  #rotationOfAll: Rotation;

  constructor(surroundings: ReplicaSurroundings) {
    this.#with = surroundings;
    this.#rotationOfUnknown = this.#toRotation([], CURSORS.unknownModels);
    this.#rotationOfAll = this.#toRotation([], CURSORS.all);
  }

  /**
   * Takes over which replicas there are and what they serve. Replicas that stay keep their connections, those that
   * went finish what they have in flight; turns go on from where they were.
   */
  apply({ replicas: facts, cursors }: Topology): void {
    const previous = this.#bySlot;
    const replicas = facts.map((replicaFacts) => {
      const known = previous.get(replicaFacts.slot);
      known?.update(replicaFacts);
      return known ?? new Replica(replicaFacts, this.#with);
    });
    this.#bySlot = new Map(replicas.map((replica) => [replica.slot, replica]));
    for (const [slot, replica] of previous) if (!this.#bySlot.has(slot)) replica.retire();

    const { byModel, ofUnknown } = toServingSets(replicas);
    this.#rotations = new Map(
      [...cursors].map(([model, cursor]) => [model, this.#toRotation(byModel.get(model) ?? [], cursor)]),
    );
    this.#rotationOfUnknown = this.#toRotation(ofUnknown, CURSORS.unknownModels);
    this.#rotationOfAll = this.#toRotation(replicas, CURSORS.all);
  }

  /** A lease on the next replica in turn that serves `model`, is not drained and was not tried. */
  acquire(model: string, tried: ReadonlySet<Replica>): Lease | NoLease {
    return acquireFrom(this.#rotations.get(model) ?? this.#rotationOfUnknown, tried);
  }

  /** A lease on the next replica in turn, whatever it serves: for GET /v1/models. */
  acquireAny(tried: ReadonlySet<Replica>): Lease | NoLease {
    return acquireFrom(this.#rotationOfAll, tried);
  }

  /** Destroys every connection to every replica. */
  async close(): Promise<void> {
    await Promise.all([...this.#bySlot.values()].map((replica) => replica.connections.close()));
  }

  #toRotation(candidates: readonly Replica[], cursor: number): Rotation {
    return new Rotation(candidates, cursor, this.#with.shared);
  }
}

function acquireFrom(rotation: Rotation, tried: ReadonlySet<Replica>): Lease | NoLease {
  if (rotation.candidates.length === 0) return 'model_not_found';
  const replica = rotation.takeTurn(tried);
  if (replica !== null) return new Lease(replica);
  return tried.size > 0 ? 'no_replica_reachable' : 'all_replicas_drained';
}
