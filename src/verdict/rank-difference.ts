/** The values of like requests at one time: those of the replica that is judged, and those of its peers. */
export interface Pair {
  readonly own: Float64Array;
  readonly peers: Float64Array;
}

/**
 * The standardized difference of two samples, over several groups of like requests: positive if the replica's own values
 * are greater. `scale` multiplies the own values, `shift` is added to them.
 *
 * It is Wilcoxon's rank sum, combined over groups with van Elteren's weights. Ranks do not see how long a tail is. If the
 * labels "own" and "peer" mean nothing, it is symmetric about zero. The values of each pair must be sorted. Null if no
 * group has different values of both.
 */
export function rankDifference(pairs: Iterable<Pair>, { scale = 1, shift = 0 } = {}): number | null {
  let sum = 0;
  let variance = 0;
  for (const { own, peers } of pairs) {
    const count = own.length + peers.length;
    if (own.length === 0 || peers.length === 0) continue;
    const { excess, tied } = compareSorted(own, peers, { scale, shift });
    const groupVariance = ((own.length * peers.length) / 12) * (count + 1 - tied / (count * (count - 1)));
    sum += excess / (count + 1);
    variance += groupVariance / (count + 1) ** 2;
  }
  // Equal values leave only rounding errors.
  return variance > 1e-9 ? sum / Math.sqrt(variance) : null;
}

/**
 * `excess`: in how many more pairs than half of them the own value is greater; a tie is half a pair. `tied`: the sum of
 * t³ − t over groups of t equal values.
 */
function compareSorted(
  own: Float64Array,
  peers: Float64Array,
  { scale, shift }: { readonly scale: number; readonly shift: number },
): { readonly excess: number; readonly tied: number } {
  let greater = 0;
  let tied = 0;
  let at = 0;
  let below = 0;
  while (at < own.length || below < peers.length) {
    const ownValue = at < own.length ? (own[at] ?? 0) * scale + shift : Number.POSITIVE_INFINITY;
    const peersValue = below < peers.length ? (peers[below] ?? 0) : Number.POSITIVE_INFINITY;
    const value = Math.min(ownValue, peersValue);
    const ownEqual = ownValue === value ? runAt(own, at) : 0;
    const peersEqual = peersValue === value ? runAt(peers, below) : 0;
    greater += ownEqual * (below + peersEqual / 2);
    tied += (ownEqual + peersEqual) ** 3 - (ownEqual + peersEqual);
    at += ownEqual;
    below += peersEqual;
  }
  return { excess: greater - (own.length * peers.length) / 2, tied };
}

/** How many equal values begin at an index. */
function runAt(sorted: Float64Array, start: number): number {
  let end = start + 1;
  while (end < sorted.length && sorted[end] === sorted[start]) end++;
  return end - start;
}
