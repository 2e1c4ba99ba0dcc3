/** How often a gateway reads the others' sheets and writes its own. */
export const ROUND_MS = 1_000;

/**
 * For how long what another gateway said is believed, counted from when this one sent the beat that it answers. In a
 * healthy fleet that is up to three rounds ago.
 */
export const BELIEF_MS = 5_000;

/**
 * For how long a gateway keeps the promise of a beat that nobody may have heard of: longer than anybody can believe
 * it, on a clock that runs 10 % slower while this one runs 10 % faster. The store forgets beats after the same time.
 */
export const PROMISE_MS = 6_250;

/**
 * For how long the store must have been heard without a gap before its silence about a gateway means anything: those
 * who lost their connection when it lost its data are back by then.
 */
export const SETTLED_MS = 5_000;
