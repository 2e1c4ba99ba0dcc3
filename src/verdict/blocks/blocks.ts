/*
 * What is compared: the facts of attempts, in blocks of those that ended at about the same time.
 *
 * It never knows how blocks are compared, nor who collects them.
 */

/** What became of an attempt, as far as the replica is concerned. */
type Outcome = 'ok' | 'error' | 'unclear';

/** The facts of one attempt at a replica that a comparison uses. Null: unknown. No text, and nothing about who sent it. */
export interface Observation {
  readonly replica: string;
  readonly model: string | null;
  readonly endpoint: string;
  /** Whether the answer was a stream: false where the replica failed before it. */
  readonly stream: boolean;
  /** Tokens of the prompt, or a quarter of its characters where the engine counts none. */
  readonly promptTokens: number | null;
  /** Those of them that the engine took from its cache. */
  readonly cachedTokens: number | null;
  readonly completionTokens: number | null;
  /** The limit of the completion that the client has set. */
  readonly maxTokens: number | null;
  /** This and `e2eMs` without what went before the attempt. */
  readonly ttftMs: number | null;
  /** The median gap between events with output. */
  readonly gapMs: number | null;
  readonly e2eMs: number;
  /** `error`: a 5xx status, an error event, or a response that broke off. `unclear`: the client is to blame, or left. */
  readonly outcome: Outcome;
  /** The finish reason of the first choice. */
  readonly finish: string | null;
}

/** Requests that ended at about the same time: those of the replica that is judged, and those of its peers. */
export interface Block {
  readonly own: readonly Observation[];
  readonly peers: readonly Observation[];
}

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
