import type { PairObservation } from '#verdict/pairs';
import { findSince } from '../find-since.ts';

/** Pairs that are kept at least: at 20 per second those of half an hour. They take 16 MB. */
const CAPACITY = 32_768;
const CHUNK_SIZE = 4_096;

interface KeptPair {
  readonly pair: PairObservation;
  readonly endedMs: number;
}

/** What became of the requests that could have been copied to one shadow, since it is one. */
interface Counts {
  /** When it began to count. */
  readonly sinceMs: number;
  readonly skipped: Map<string, number>;
  /** When a copy last ended, or the first was counted: monotonic. */
  endedMs: number;
  /** How many found no room since. */
  fullSince: number;
}

/** A shadow is silent when no copy has ended for so long, and so many have found no room meanwhile. */
const SILENT_MS = 10_000;
const SILENT_FULL = 20;

/** What a log works with. Times are monotonic. */
interface PairLogCollaborators {
  /** Since when the replica of this name is the server that it is, and a shadow or none. */
  readonly sinceMsOf: (name: string) => number;
  readonly nowMs?: () => number;
}

/** The latest pairs of answers, numbered from 0 in the order in which they ended. Times are monotonic. */
export class PairLog {
  readonly #sinceMsOf: (name: string) => number;
  readonly #nowMs: () => number;
  readonly #chunks: KeptPair[][] = [];
  readonly #counts = new Map<string, Counts>();
  #first = 0;
  #end = 0;
  #completeFromMs: number;

  constructor({ sinceMsOf, nowMs = () => performance.now() }: PairLogCollaborators) {
    this.#sinceMsOf = sinceMsOf;
    this.#nowMs = nowMs;
    this.#completeFromMs = nowMs();
  }

  /** The number of the oldest that is kept. */
  get first(): number {
    return this.#first;
  }

  /** The number that the next one gets. */
  get end(): number {
    return this.#end;
  }

  /** All pairs that have ended since then are kept. */
  get completeFromMs(): number {
    return this.#completeFromMs;
  }

  /** Takes a pair that has ended, unless another server had one of the names when it began. */
  add(pair: PairObservation): void {
    if (!this.#isOfPresent(pair.shadow, pair.tookMs) || !this.#isOfPresent(pair.primary, pair.tookMs)) return;
    const open = this.#openChunk();
    open.push({ pair, endedMs: this.#nowMs() });
    this.#end++;
  }

  /** A copy that took so long has ended, whether it makes a pair or not. */
  noteEnded(shadow: string, tookMs: number): void {
    if (!this.#isOfPresent(shadow, tookMs)) return;
    const counts = this.#countsOf(shadow);
    counts.endedMs = this.#nowMs();
    counts.fullSince = 0;
  }

  /** For how long a shadow that has all the copies that it may have has ended none; null: it is not silent. */
  silentMsOf(shadow: string): number | null {
    const { fullSince, endedMs } = this.#countsOf(shadow);
    const silentMs = this.#nowMs() - endedMs;
    return fullSince >= SILENT_FULL && silentMs >= SILENT_MS ? silentMs : null;
  }

  /** Requests were not copied. */
  noteSkipped(shadow: string, why: string, count: number): void {
    const counts = this.#countsOf(shadow);
    counts.skipped.set(why, (counts.skipped.get(why) ?? 0) + count);
    if (why === 'shadow_full') counts.fullSince += count;
  }

  /** Requests that were not copied to a shadow, by reason. */
  skippedOf(shadow: string): ReadonlyMap<string, number> {
    return this.#countsOf(shadow).skipped;
  }

  pairOf(number: number): PairObservation {
    return this.#keptOf(number).pair;
  }

  endedMsOf(number: number): number {
    return this.#keptOf(number).endedMs;
  }

  /** The number of the first that ended at this time or later; the next number if none did. */
  numberSince(ms: number): number {
    return findSince(this.#first, this.#end, (number) => this.endedMsOf(number) >= ms);
  }

  #keptOf(number: number): KeptPair {
    const place = number - this.#first;
    const kept = this.#chunks[Math.floor(place / CHUNK_SIZE)]?.[place % CHUNK_SIZE];
    if (kept === undefined) throw new RangeError('not kept');
    return kept;
  }

  #openChunk(): KeptPair[] {
    const open = this.#chunks.at(-1);
    if (open !== undefined && open.length < CHUNK_SIZE) return open;
    if (this.#chunks.length > CAPACITY / CHUNK_SIZE) {
      this.#chunks.shift();
      this.#first += CHUNK_SIZE;
      this.#completeFromMs = this.endedMsOf(this.#first);
    }
    const chunk: KeptPair[] = [];
    this.#chunks.push(chunk);
    return chunk;
  }

  #isOfPresent(name: string, tookMs: number): boolean {
    return this.#nowMs() - tookMs >= this.#sinceMsOf(name);
  }

  /** Those of the present server, as long as it is a shadow. */
  #countsOf(shadow: string): Counts {
    const known = this.#counts.get(shadow);
    if (known !== undefined && known.sinceMs >= this.#sinceMsOf(shadow)) return known;
    const nowMs = this.#nowMs();
    const counts = { sinceMs: nowMs, fullSince: 0, skipped: new Map<string, number>(), endedMs: nowMs };
    this.#counts.set(shadow, counts);
    return counts;
  }
}
