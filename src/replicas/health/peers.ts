import type { RegisteredReplica } from '#replicas/registry';
import { groupByModel } from '#replicas/routing';

/** A replica is compared with so many peers at most: more tell hardly more. */
const MAX_PEERS = 16;

/** Whether a replica can take its even share of the turns. */
function takesItsTurns({ drain, health, reachability, ramp, shadow }: RegisteredReplica): boolean {
  const isAway = reachability.state === 'unreachable' || reachability.state === 'loading';
  return shadow === null && !drain.drained && health?.state !== 'failing' && !isAway && ramp === null;
}

/** Finds the replicas that a replica can be compared with. */
export class PeerFinder {
  /** By lists of models, which probes replace as a whole. A replica may serve thousands. */
  readonly #areShared = new WeakMap<readonly string[], WeakMap<readonly string[], boolean>>();

  /**
   * The names of the peers of the replica at an index: they serve a model of its own on the same hardware, as far as that
   * is configured, and have an even share of the turns. One with fewer is faster for that reason alone.
   */
  peersAt(index: number, replicas: readonly RegisteredReplica[]): readonly string[] {
    const own = replicas[index];
    const peers: string[] = [];
    for (let step = 1; own !== undefined && step < replicas.length && peers.length < MAX_PEERS; step++) {
      const other = replicas[(index + step) % replicas.length];
      if (other === undefined || !haveSameHardware(own, other)) continue;
      if (this.#shareModel(own.models, other.models) && takesItsTurns(other)) peers.push(other.name);
    }
    return peers;
  }

  #shareModel(one: readonly string[] | null, other: readonly string[] | null): boolean {
    if (one === null || other === null) return one === other;
    let known = this.#areShared.get(one);
    if (known === undefined) {
      known = new WeakMap();
      this.#areShared.set(one, known);
    }
    let isShared = known.get(other);
    if (isShared === undefined) {
      const names = new Set(other);
      isShared = one.includes('*') || names.has('*') || one.some((model) => names.has(model));
      known.set(other, isShared);
    }
    return isShared;
  }
}

function haveSameHardware({ config: one }: RegisteredReplica, { config: other }: RegisteredReplica): boolean {
  return one.gpuModel === other.gpuModel && one.gpuCount === other.gpuCount;
}

/**
 * Whether a replica may be tried last: of each model that it serves, enough other replicas can take their turns.
 * `maxFailingShare`: the share of all of them that may not.
 */
export function canBeSpared(
  replica: RegisteredReplica,
  replicas: readonly RegisteredReplica[],
  maxFailingShare: number,
): boolean {
  const { byModel, ofUnknown } = groupByModel(replicas.filter(({ shadow }) => shadow === null));
  const groups = [...byModel.values(), ofUnknown].filter((group) => group.includes(replica));
  return groups.every((group) => {
    const left = group.filter((other) => other !== replica && takesItsTurns(other)).length;
    // Rounding errors must not cost a replica: 0.7 of 10 are 7.
    const mayFail = Math.floor(group.length * maxFailingShare + 1e-9);
    return left >= Math.max(1, group.length - mayFail);
  });
}
