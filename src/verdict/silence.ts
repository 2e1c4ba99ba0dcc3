import type { Observation } from './observation.ts';

/**
 * When this many requests of an equal replica would have ended, and none of this one has, it is silent. By chance alone
 * that happens once in e^20 times.
 */
const EXPECTED_ENDS = 20;

/** An engine may compile for some seconds before its first answer. */
const MIN_SILENCE_MS = 10_000;

/** What a replica would have done if it were like its peers. */
export interface Silence {
  /** When a request of the replica last ended, or when it was undrained. */
  readonly sinceMs: number;
  /** The requests that would have ended since then. */
  readonly expected: number;
}

/** What is known of the replica and of its peers at one time. */
interface Moment {
  readonly nowMs: number;
  readonly ended: boolean;
  /** Requests of its peers that have ended since the last look. */
  readonly peers: readonly Observation[];
  readonly peerCount: number;
  /** Of an even share: what the replica gets of the turns. */
  readonly share: number;
}

/** The silence after another look. Only requests of the peers count that began after it. */
export function continueSilence(before: Silence, { nowMs, ended, peers, peerCount, share }: Moment): Silence {
  if (ended) return { sinceMs: nowMs, expected: 0 };
  if (peerCount === 0) return before;
  const begunSince = peers.filter(({ e2eMs }) => nowMs - e2eMs >= before.sinceMs).length;
  return { ...before, expected: before.expected + (begunSince * share) / peerCount };
}

/** Whether a replica with requests in flight has been silent for too long. */
export function isSilent({ sinceMs, expected }: Silence, inflight: number, nowMs: number): boolean {
  return inflight > 0 && expected >= EXPECTED_ENDS && nowMs - sinceMs >= MIN_SILENCE_MS;
}
