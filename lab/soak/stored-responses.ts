import type { Journal } from './journal.ts';

/** A response that a replica keeps. */
export interface Stored {
  readonly id: string;
  readonly replica: string;
  /** Through which gateway it was made. */
  readonly gateway: number;
  readonly madeMs: number;
}

/** A response is asked for this long after it was made, at the earliest. */
const PAUSE_MS = 3_000;
const MAX_STORED = 500;
/** The other gateway learns so late that a replica is back, or that Redis is. */
const REPLICA_SETTLES_MS = 5_000;
const REDIS_SETTLES_MS = 15_000;

/** Responses that replicas keep, and that nobody has asked for yet. */
export class StoredResponses {
  readonly #journal: Journal;
  readonly #waiting: Stored[] = [];

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Notes the response whose answer begins so. */
  add(answer: string, gateway: number): void {
    const [, id, replica] = /"id":"(resp_(r\d)_[0-9a-f]+)"/.exec(answer) ?? [];
    if (id === undefined || replica === undefined || this.#waiting.length >= MAX_STORED) return;
    this.#waiting.push({ id, replica, gateway, madeMs: performance.now() });
  }

  /** The oldest that may be asked for. */
  take(): Stored | null {
    const [oldest] = this.#waiting;
    if (oldest === undefined || performance.now() - oldest.madeMs < PAUSE_MS) return null;
    this.#waiting.shift();
    return oldest;
  }

  /**
   * Whether its replica may have forgotten it or be passed over. Another gateway than the one through which it was made
   * may also not have heard of it: it hears that through Redis, from a worker.
   */
  mayBeGone({ replica, gateway, madeMs }: Stored, askedGateway: number): boolean {
    const nowMs = performance.now();
    const ofReplica = this.#journal.between(madeMs - REPLICA_SETTLES_MS, nowMs);
    if (ofReplica.some((each) => each.replica === replica)) return true;
    const ofNews = this.#journal.between(madeMs - REDIS_SETTLES_MS, nowMs);
    return gateway !== askedGateway && ofNews.some(({ kind }) => kind === 'redis' || kind === 'worker');
  }
}
