import type { ResponseState } from './ask-for-response.ts';

/** How the gateway ceases to follow a response: `background_end` of its record. */
export type BackgroundEnd =
  /** The replica says that it is over. */
  | 'ended'
  /** The replica has it no more: it has restarted, or the response was deleted. */
  | 'lost'
  /** It is older than `limits.background`. */
  | 'over_limit'
  /** The gateway does not know its id, or follows too many already, or stops and cannot store it. */
  | 'not_followed';

/** What follows an answer of a replica about a response. */
export type FollowStep =
  | { readonly kind: 'end'; readonly end: BackgroundEnd }
  /** `isKnown`: whether it is known to go on. */
  | { readonly kind: 'ask_again'; readonly inMs: number; readonly isKnown: boolean };

/** The shortest and the longest time between two looks at one response. */
const SOONEST_MS = 250;
const LATEST_MS = 5_000;
/** Looks come at a share of the age, so that a short response is seen to end soon and a long one costs few looks. */
const SHARE_OF_AGE = 1 / 8;
/** Several processes may answer at one address, each with responses of its own. */
const MISSES = 3;

/** What is known of a response when a replica has answered, or was not asked (null). */
export interface FollowFacts {
  readonly ageMs: number;
  readonly limitMs: number;
  /** How often in a row the replica did not have it, this time included. */
  readonly misses: number;
  readonly state: ResponseState['kind'] | null;
}

/** Decides what follows. */
export function decideFollow({ ageMs, limitMs, misses, state }: FollowFacts): FollowStep {
  if (state === 'ended') return { kind: 'end', end: 'ended' };
  if (state === 'missing' && misses >= MISSES) return { kind: 'end', end: 'lost' };
  if (ageMs >= limitMs) return { kind: 'end', end: 'over_limit' };
  const untilLimitMs = limitMs - ageMs;
  const usualMs = Math.min(LATEST_MS, Math.max(SOONEST_MS, ageMs * SHARE_OF_AGE));
  const inMs = Math.min(state === 'missing' ? SOONEST_MS : usualMs, untilLimitMs);
  return { kind: 'ask_again', inMs, isKnown: state === 'open' };
}
