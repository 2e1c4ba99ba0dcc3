/** A block is this long at least, so that what slows a replica for a moment counts once. */
export const MIN_BLOCK_MS = 2_000;

/** A block with fewer requests of either side tells little. */
export const MIN_REQUESTS = 10;

/** A block has so many requests of the judged side at most, and so many of its peers: more tell hardly more. */
const MAX_OWN = 250;
const MAX_PEERS = 750;

/** How long a block is, and how many requests of each side it has. */
interface BlockSize {
  readonly spanMs: number;
  readonly own: number;
  readonly peers: number;
}

/** Whether a block of this size can be compared. */
export function isFull({ spanMs, own, peers }: BlockSize): boolean {
  return spanMs >= MIN_BLOCK_MS && own >= MIN_REQUESTS && peers >= MIN_REQUESTS;
}

/** The indices of those of `count` requests of one side that a block has: all, or some at even distances. */
export function thinIndices(count: number, side: 'own' | 'peers'): readonly number[] {
  const max = side === 'own' ? MAX_OWN : MAX_PEERS;
  const step = Math.max(1, count / max);
  return Array.from({ length: Math.min(count, max) }, (_, index) => Math.floor(index * step));
}
