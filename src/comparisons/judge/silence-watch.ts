/**
 * When this many requests of an equal replica would have ended, and none of this one has, it is silent. By chance alone
 * that happens once in e^20 times.
 */
const EXPECTED_ENDS = 20;

/** An engine may compile for some seconds before its first answer. */
const MIN_SILENCE_MS = 10_000;

/** What is known of the replica and of its peers when a request of a peer ends. */
interface PeerEnd {
  readonly beganMs: number;
  readonly peerCount: number;
  /** Of an even share: what the replica gets of the turns. */
  readonly share: number;
}

/** Watches whether a replica with requests in flight ends none of them, while its peers do. */
export class SilenceWatch {
  /** When a request of the replica last ended, or when it was first watched. */
  #sinceMs: number;
  /** The requests that would have ended since then if it were like its peers. */
  #expected = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** A request of the replica has ended, or it got none on purpose. */
  heard(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#expected = 0;
  }

  /** A request of a peer has ended. It counts if it began after the replica was last heard. */
  peerEnded({ beganMs, peerCount, share }: PeerEnd): void {
    if (beganMs >= this.#sinceMs && peerCount > 0) this.#expected += share / peerCount;
  }

  /** Whether the replica, with so many requests in flight, has been silent for too long. */
  isSilent(inflight: number, nowMs: number): boolean {
    const isLong = nowMs - this.#sinceMs >= MIN_SILENCE_MS;
    return inflight > 0 && isLong && this.#expected >= EXPECTED_ENDS - 1e-9;
  }
}
