import type { RegisteredReplica } from '#replicas/registry';
import type { Silence } from '#replicas/silence';

/** How many times as long as the longest silence that has ended by itself a silence must be, not to be usual. */
const TIMES_AS_LONG = 3;
/**
 * How many times the length of a silence replicas must have been watched while requests waited, before a longer one than
 * ever counts. Above the cap the same is enough for any length.
 */
const TIMES_WATCHED = 100;
const WATCHED_CAP_MS = 60_000;
/** What happened is known for one to two of these. */
const MEMORY_MS = 24 * 3_600_000;

/** Between two looks that are further apart, this machine or a worker stood still. The silence was not the replica's. */
const STOOD_STILL_MS = 5_000;

/** What one replica has shown. */
interface Usual {
  /** The longest silence that a byte has ended. */
  longestMs: number;
  /** How long it was watched while a request waited on it. */
  watchedMs: number;
}

/**
 * How long replicas are silent although nothing is wrong: long prompts, answers in one piece, and calls of tools that the
 * engine parses first. Learnt from the silences that ended with a byte. `npm run lab -- measure/frozen` shows what follows.
 */
export class UsualSilences {
  #recent = new WeakMap<RegisteredReplica, Usual>();
  #former = new WeakMap<RegisteredReplica, Usual>();
  #recentSinceMs: number | null = null;
  /** Since when the replicas that a request waits on were silent, at the last look. */
  #silentSinceMs = new Map<RegisteredReplica, number>();
  #lookedMs = 0;

  /** Looks at the replicas that are not drained. */
  look(seen: ReadonlyMap<RegisteredReplica, Silence>, nowMs: number): void {
    this.#forget(nowMs);
    const sinceLookMs = nowMs - this.#lookedMs;
    const before = sinceLookMs > STOOD_STILL_MS ? new Map<RegisteredReplica, number>() : this.#silentSinceMs;
    this.#silentSinceMs = new Map();
    this.#lookedMs = nowMs;
    for (const [replica, silence] of seen) {
      const sinceMs = toSilentSince(silence);
      if (sinceMs !== null) this.#silentSinceMs.set(replica, sinceMs);
      const beforeMs = before.get(replica);
      if (beforeMs === undefined) continue;
      const usual = this.#usualOf(replica);
      usual.watchedMs += sinceLookMs;
      const { heardMs } = silence;
      if (heardMs !== null && heardMs > beforeMs)
        usual.longestMs = Math.max(usual.longestMs, heardMs - beforeMs);
    }
  }

  /** Whether a silence of this length would be a new thing for these replicas, which have been watched for long enough. */
  isUnusual(replicas: Iterable<RegisteredReplica>, silentMs: number): boolean {
    let longestMs = 0;
    let watchedMs = 0;
    for (const replica of replicas) {
      for (const usual of [this.#recent.get(replica), this.#former.get(replica)]) {
        if (usual === undefined) continue;
        longestMs = Math.max(longestMs, usual.longestMs);
        watchedMs += usual.watchedMs;
      }
    }
    const isWatched = watchedMs >= TIMES_WATCHED * Math.min(silentMs, WATCHED_CAP_MS);
    return isWatched && silentMs >= TIMES_AS_LONG * longestMs;
  }

  #usualOf(replica: RegisteredReplica): Usual {
    const known = this.#recent.get(replica);
    if (known !== undefined) return known;
    const usual: Usual = { longestMs: 0, watchedMs: 0 };
    this.#recent.set(replica, usual);
    return usual;
  }

  #forget(nowMs: number): void {
    this.#recentSinceMs ??= nowMs;
    if (nowMs - this.#recentSinceMs < MEMORY_MS) return;
    this.#former = this.#recent;
    this.#recent = new WeakMap();
    this.#recentSinceMs = nowMs;
  }
}

/** Since when the replica has been silent while a request waits on it; null: none waits. */
export function toSilentSince({ heardMs, waitingSinceMs }: Silence): number | null {
  return waitingSinceMs === null ? null : Math.max(heardMs ?? 0, waitingSinceMs);
}
