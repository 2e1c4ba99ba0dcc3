import type { Block, Observation } from './observation.ts';

/** A block is this long at least, so that what slows a replica for a moment counts once. */
export const MIN_BLOCK_MS = 2_000;

/** A block with fewer requests of either side tells little. */
export const MIN_REQUESTS = 10;

/** A block that grows. `sinceMs`: when it began. */
export interface OpenBlock extends Block {
  readonly sinceMs: number;
}

/** The block after these observations; `isPeer` decides which replicas are peers. */
export function fillBlock(
  { own, peers, sinceMs }: OpenBlock,
  observations: readonly Observation[],
  { replica, isPeer }: { readonly replica: string; readonly isPeer: (name: string) => boolean },
): OpenBlock {
  return {
    own: [...own, ...observations.filter((each) => each.replica === replica)],
    peers: [...peers, ...observations.filter((each) => each.replica !== replica && isPeer(each.replica))],
    sinceMs,
  };
}

/** Whether the block can be compared. */
export function isFull({ own, peers, sinceMs }: OpenBlock, nowMs: number): boolean {
  return nowMs - sinceMs >= MIN_BLOCK_MS && own.length >= MIN_REQUESTS && peers.length >= MIN_REQUESTS;
}
