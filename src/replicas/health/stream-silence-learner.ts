import { CURSORS } from '#replicas/shared';
import { SILENT_AFTER, type SilenceLimits } from '#replicas/silence';

/** What an ended stream shows of the times of its model. Null: unknown. */
export interface EndedStream {
  /** As records have it. */
  readonly model: string;
  readonly promptChars: number | null;
  /** From the beginning of the attempt. */
  readonly firstTokenMs: number | null;
  /** The 95th percentile of the gaps between its tokens. */
  readonly gapMs: number | null;
}

/** So many streams make a limit. */
const MIN_STREAMS = 20;

/** A stream is silent after so many times what four of five like ones need. */
const FIRST_TOKEN_FACTOR = 5;
const GAP_FACTOR = 20;
const USUAL_SHARE = 0.8;

/** The kinds whose times are kept: those of which streams ended last. One takes about 2 KB. */
const MAX_KINDS = 1_000;
const MAX_AGE_MS = 3_600_000;

/** The times of the streams of one kind. */
interface Times {
  /** By class of prompts. */
  readonly firstToken: Map<number, DecayingTimes>;
  readonly gaps: DecayingTimes;
  /** When a stream last ended. */
  addedMs: number;
}

/**
 * Learns from ended streams for how long streams of each model are usually without a byte, and tells the workers from when
 * on one is silent. What it learned counts half after ten minutes, and nothing when no stream has ended for an hour.
 */
export class StreamSilenceLearner {
  readonly #limits: SilenceLimits;
  readonly #nowMs: () => number;
  /** The kind of the streams of each model, by the name that records have. */
  #kinds: ReadonlyMap<string, number> = new Map();
  /** By kind; the one that a stream ended of last is last. */
  readonly #times = new Map<number, Times>();

  /** @param nowMs monotonic milliseconds */
  constructor(limits: SilenceLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** Takes over the kind of the streams of each model, by the name that records have. */
  take(kinds: ReadonlyMap<string, number>): void {
    const before = namesByKind(this.#kinds);
    const now = namesByKind(kinds);
    this.#kinds = kinds;
    for (const [kind, names] of before) if (now.get(kind) !== names) this.#forget(kind);
  }

  /** Takes a stream that has ended well. */
  add({ model, promptChars, firstTokenMs, gapMs }: EndedStream): void {
    const kind = this.#kinds.get(model) ?? CURSORS.unknownModels;
    const nowMs = this.#nowMs();
    const times = this.#touch(kind, nowMs);
    if (firstTokenMs !== null) {
      const sizeClass = this.#limits.sizeClassOf(promptChars);
      const alike = times.firstToken.get(sizeClass) ?? new DecayingTimes();
      times.firstToken.set(sizeClass, alike);
      const limitMs = toLimitMs(alike, firstTokenMs, nowMs, FIRST_TOKEN_FACTOR);
      this.#limits.setFirstByte(kind, sizeClass, limitMs);
    }
    if (gapMs !== null) this.#limits.setGap(kind, toLimitMs(times.gaps, gapMs, nowMs, GAP_FACTOR));
  }

  #touch(kind: number, nowMs: number): Times {
    const times = this.#times.get(kind) ?? createTimes();
    times.addedMs = nowMs;
    this.#times.delete(kind);
    this.#times.set(kind, times);
    const [oldest] = this.#times;
    if (oldest !== undefined && (this.#times.size > MAX_KINDS || nowMs - oldest[1].addedMs > MAX_AGE_MS)) {
      this.#forget(oldest[0]);
    }
    return times;
  }

  #forget(kind: number): void {
    this.#times.delete(kind);
    this.#limits.clear(kind);
  }
}

function createTimes(): Times {
  return { firstToken: new Map(), gaps: new DecayingTimes(), addedMs: 0 };
}

/** The limit after one more time; null: too few are known. */
function toLimitMs(times: DecayingTimes, ms: number, nowMs: number, factor: number): number | null {
  times.add(ms, nowMs);
  if (times.count < MIN_STREAMS) return null;
  return Math.max(SILENT_AFTER.minMs, Math.round(times.quantile(USUAL_SHARE) * factor));
}

/** The names of each kind, as one text. Models of one engine may share a kind. */
function namesByKind(kinds: ReadonlyMap<string, number>): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const [name, kind] of kinds) {
    const others = names.get(kind);
    names.set(kind, others === undefined ? name : `${others}\n${name}`);
  }
  names.delete(CURSORS.unknownModels);
  return names;
}

/** What is known counts half after this time. */
const HALF_LIFE_MS = 600_000;

/** Each step is the square root of two: half a millisecond to 18 minutes. */
const BUCKETS = 42;
const FIRST_MS = 0.5;

/** A distribution of times that forgets: 168 bytes, and a few steps for each time. */
class DecayingTimes {
  readonly #counts = new Float32Array(BUCKETS);
  #count = 0;
  #halvedMs = Number.NEGATIVE_INFINITY;

  /** How many times it knows. Older ones count less. */
  get count(): number {
    return this.#count;
  }

  /** Adds a time. `nowMs`: monotonic. */
  add(ms: number, nowMs: number): void {
    this.#halve(nowMs);
    const bucket = Math.ceil(2 * Math.log2(Math.max(ms, FIRST_MS) / FIRST_MS));
    const index = Math.min(BUCKETS - 1, bucket);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count++;
  }

  /** At least what this share of the times is at most: the upper end of a step. */
  quantile(share: number): number {
    let seen = 0;
    for (const [index, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= share * this.#count) return FIRST_MS * 2 ** (index / 2);
    }
    return FIRST_MS * 2 ** ((BUCKETS - 1) / 2);
  }

  #halve(nowMs: number): void {
    const steps = Math.floor((nowMs - this.#halvedMs) / HALF_LIFE_MS);
    if (steps < 1) return;
    this.#halvedMs = steps < Number.POSITIVE_INFINITY ? this.#halvedMs + steps * HALF_LIFE_MS : nowMs;
    const factor = 0.5 ** steps;
    this.#count *= factor;
    for (const [index, count] of this.#counts.entries()) this.#counts[index] = count * factor;
  }
}
