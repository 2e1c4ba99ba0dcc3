import type { DrainState, Replica } from './replica.ts';
import { candidatesOf, isWildcard, type Rotation, takeTurn } from './rotation.ts';

/** One unit of `inflight` on a replica; given back exactly once, however often it is disposed. */
export class Lease implements Disposable {
  readonly replica: Replica;
  #isHeld = true;

  constructor(replica: Replica) {
    this.replica = replica;
    replica.inflight++;
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.replica.inflight--;
  }
}

/** Why there is no lease. */
export type NoLease = 'model_not_found' | 'all_replicas_drained' | 'no_replica_reachable';

/** The set of replicas: whose turn it is, who is drained, how much is in flight. */
export class ReplicaPool {
  readonly replicas: readonly Replica[];
  readonly #byName: ReadonlyMap<string, Replica>;
  /** One rotation a known model. Unknown names share the one behind `#rotationOfUnknown`: bounded. */
  #rotations = new Map<string, Rotation>();
  #rotationOfUnknown: Rotation = { candidates: [], cursor: 0 };
  readonly #rotationOfAll: Rotation;

  constructor(replicas: readonly Replica[]) {
    this.replicas = replicas;
    this.#byName = new Map(replicas.map((replica) => [replica.name, replica]));
    this.#rotationOfAll = { candidates: replicas, cursor: 0 };
    this.refreshModels();
  }

  find(name: string): Replica | undefined {
    return this.#byName.get(name);
  }

  /** Takes over what replicas now say they serve. Turns go on from where they were. */
  refreshModels(): void {
    const previous = this.#rotations;
    const names = new Set(this.replicas.flatMap((replica) => replica.models ?? []));
    names.delete('*');
    this.#rotations = new Map();
    for (const name of names) {
      const candidates = candidatesOf(name, this.replicas);
      this.#rotations.set(name, {
        candidates,
        cursor: (previous.get(name)?.cursor ?? 0) % candidates.length,
      });
    }
    const wildcards = this.replicas.filter(isWildcard);
    const candidates = wildcards.length > 0 ? wildcards : this.replicas.filter((r) => r.models === null);
    this.#rotationOfUnknown = {
      candidates,
      cursor: this.#rotationOfUnknown.cursor % Math.max(1, candidates.length),
    };
  }

  /** A lease on the next replica in turn that serves `model`, is not drained and was not tried. */
  acquire(model: string, tried: ReadonlySet<Replica>): Lease | NoLease {
    return acquireFrom(this.#rotations.get(model) ?? this.#rotationOfUnknown, tried);
  }

  /** A lease on the next replica in turn, whatever it serves: for GET /v1/models. */
  acquireAny(tried: ReadonlySet<Replica>): Lease | NoLease {
    return acquireFrom(this.#rotationOfAll, tried);
  }

  /** Sets the drain state and returns the one before. In force at once: see send's check on writing. */
  setDrained(replica: Replica, drained: boolean, since: string): DrainState {
    const before = replica.drain;
    if (before.drained !== drained) replica.drain = { drained, since };
    return before;
  }

  /** Destroys every connection to every replica. */
  async close(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.connections.close()));
  }
}

function acquireFrom(rotation: Rotation, tried: ReadonlySet<Replica>): Lease | NoLease {
  if (rotation.candidates.length === 0) return 'model_not_found';
  const replica = takeTurn(rotation, tried);
  if (replica !== null) return new Lease(replica);
  return rotation.candidates.some((candidate) => tried.has(candidate))
    ? 'no_replica_reachable'
    : 'all_replicas_drained';
}
