import { type Block, type Observation, thinIndices } from '#verdict/blocks';

/** The latest requests that are kept, of all replicas, and of each. Each takes about 200 bytes. */
const MAX_KEPT = 65_536;
const MAX_KEPT_OF_ONE = 512;
const MIN_KEPT_OF_ONE = 64;

/** The requests of one replica, in the order in which they ended. */
interface Ended {
  readonly requests: { readonly observation: Observation; readonly endedMs: number }[];
  /** Those that ended before are not kept. */
  completeFromMs: number;
}

/** The latest requests of each replica, of which blocks are made. Adding one takes one step. */
export class PeerBlocks {
  readonly #byReplica = new Map<string, Ended>();

  /** Adds a request that has ended now. */
  add(observation: Observation, nowMs: number): void {
    const { replica } = observation;
    let ended = this.#byReplica.get(replica);
    if (ended === undefined) {
      ended = { requests: [], completeFromMs: Number.NEGATIVE_INFINITY };
      this.#byReplica.set(replica, ended);
    }
    ended.requests.push({ observation, endedMs: nowMs });
    // Now and then, because it moves all others.
    const max = Math.min(MAX_KEPT_OF_ONE, Math.max(MIN_KEPT_OF_ONE, MAX_KEPT / this.#byReplica.size));
    if (ended.requests.length >= 2 * max) drop(ended, Math.floor(max));
  }

  /**
   * The requests of a replica and of its peers that have ended since then. If not all of them are kept, those of the time
   * of which all are: what slows all replicas at one time must be on both sides.
   */
  blockOf(replica: string, peers: readonly string[], sinceMs: number): Block {
    const sources = [replica, ...peers].map((name) => this.#byReplica.get(name));
    const fromMs = Math.max(sinceMs, ...sources.map((ended) => ended?.completeFromMs ?? sinceMs));
    const [own = [], ...others] = sources.map((ended) => endedAfter(ended, fromMs));
    return { own: thin(own, 'own'), peers: thin(others.flat(), 'peers') };
  }

  /** Whether so many requests of a replica have ended since then. */
  hasEnded(replica: string, count: number, sinceMs: number): boolean {
    const ended = this.#byReplica.get(replica);
    return ended !== undefined && ended.requests.length - indexAfter(ended, sinceMs) >= count;
  }

  /** Forgets the requests that ended before. */
  forgetBefore(ms: number): void {
    for (const [name, ended] of this.#byReplica) {
      const gone = indexAfter(ended, ms);
      if (gone === ended.requests.length) this.#byReplica.delete(name);
      else if (gone > ended.requests.length / 2) drop(ended, gone);
    }
  }

  clear(): void {
    this.#byReplica.clear();
  }
}

/** Forgets so many of the oldest. */
function drop(ended: Ended, count: number): void {
  ended.completeFromMs = ended.requests[count - 1]?.endedMs ?? ended.completeFromMs;
  ended.requests.splice(0, count);
}

function endedAfter(ended: Ended | undefined, ms: number): readonly Observation[] {
  if (ended === undefined) return [];
  return ended.requests.slice(indexAfter(ended, ms)).map(({ observation }) => observation);
}

/** The index of the first request that ended after this time. */
function indexAfter({ requests }: Ended, ms: number): number {
  let [low, high] = [0, requests.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((requests[middle]?.endedMs ?? 0) > ms) high = middle;
    else low = middle + 1;
  }
  return low;
}

function thin(observations: readonly Observation[], side: 'own' | 'peers'): readonly Observation[] {
  return thinIndices(observations.length, side).flatMap((index) => observations[index] ?? []);
}
