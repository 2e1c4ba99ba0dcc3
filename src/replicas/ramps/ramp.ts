/** The share of its even turns that a replica gets when its ramp begins. */
const FIRST_SHARE = 0.05;

/** The turns that a replica may hold unused: enough for it to be reached, too few for a burst. */
const MAX_CREDIT = 2;

/**
 * The share of an even part of the turns that a replica gets on its ramp: it grows in a straight line from 0.05, and is
 * 1 from the end on.
 */
export function rampShare(elapsedMs: number, durationMs: number): number {
  if (elapsedMs >= durationMs) return 1;
  return FIRST_SHARE + ((1 - FIRST_SHARE) * Math.max(0, elapsedMs)) / durationMs;
}

/**
 * The turns of a replica on its ramp after one more request for its model. `evenShares`: the sum of the shares of all
 * candidates. So a replica with the share s beside n others gets s of n + s turns, whatever the others do.
 */
export function earnTurn(credit: number, share: number, evenShares: number): number {
  return Math.min(MAX_CREDIT, credit + share / evenShares);
}

/**
 * The turns of a replica after a request that it took. It may have taken one that it had no turn for, because no other
 * replica could: such requests are set against later turns, but only so many of them.
 */
export function spendTurn(credit: number): number {
  return Math.max(-MAX_CREDIT, credit - 1);
}

/** Whether a replica on its ramp takes a request. */
export function hasTurn(credit: number): boolean {
  return credit >= 1;
}

/**
 * Whether a replica with this share has taken back a prefix. The prefixes come back one after another, and one that is
 * back stays, so that its blocks are computed once. Every thread and gateway finds the same ones.
 *
 * @param key 32 bits of the prefix's hash
 * @param seed 32 bits that identify the replica
 */
export function hasTakenBack(key: number, seed: number, share: number): boolean {
  // The prefixes that a replica owns have much in common: the order in which they return must not depend on that.
  let bits = Math.imul(key, 0x9e3779b1) ^ seed;
  bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return (bits ^ (bits >>> 15)) >>> 0 < share * 2 ** 32;
}
