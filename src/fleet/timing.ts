/** How often a gateway reads the other gateways' messages and writes its own. */
export const SYNC_INTERVAL_MS = 1_000;

/**
 * How long another gateway's heartbeat is valid, counted from when this gateway sent the heartbeat that it
 * acknowledges. In a healthy fleet that was up to three syncs ago.
 */
export const HEARTBEAT_VALID_MS = 5_000;

/**
 * How long a gateway keeps to what its heartbeat said, even if no other gateway may have read it. It is longer than any
 * reader treats the heartbeat as valid, even if the reader's clock runs 10 % slow and the sender's 10 % fast. The store
 * expires heartbeats after the same time. The first gateway of a fleet waits so long, too: another one may still run.
 */
export const HEARTBEAT_TTL_MS = 6_250;

/**
 * How long the store must have been readable without a gap before the absence of a gateway means anything. If the store
 * lost its data and dropped its connections, all gateways have reconnected and written again by then.
 */
export const STABLE_AFTER_MS = 5_000;
