import { WINDOW_SLICES } from './slices.ts';
import { OTHER_NAMES } from './top-names.ts';

/** Why requests failed, and where. */
export interface FailureReason {
  /** The record's `error_type`; without one the status as text, or `_OTHER`. */
  readonly code: string;
  readonly status: number;
  /** Null if no replica was tried. */
  readonly replica: string | null;
  /** Null if the request named none that could be read. */
  readonly model: string | null;
}

/** A reason, and how many requests failed for it. */
export interface CountedReason extends FailureReason {
  readonly count: number;
}

/** Counts of one slice, by the key of their reason. */
type Counts = Map<string, { readonly reason: FailureReason; count: number }>;

/** How many reasons are counted separately in one slice. The others lose their replica and model. */
const MAX_REASONS = 1_024;

/** Counts the reasons of failures in each slice of the last minute. Slices are given in ascending order. */
export class FailureReasons {
  /** The newest is last. Slices without a failure are absent. */
  readonly #slices: { readonly index: number; readonly counts: Counts }[] = [];

  /** Counts a request that failed in this slice. */
  add(reason: FailureReason, slice: number): void {
    const counts = this.#countsAt(slice);
    const key = toKey(reason);
    if (counts.size < MAX_REASONS || counts.has(key)) {
      add(counts, key, reason, 1);
      return;
    }
    const other = { ...reason, replica: OTHER_NAMES, model: OTHER_NAMES };
    add(counts, toKey(other), other, 1);
  }

  /** At most `limit` reasons since the slice `first`, by their count. */
  listFrom(first: number, limit: number): readonly CountedReason[] {
    const sums: Counts = new Map();
    for (const { index, counts } of this.#slices) {
      if (index < first) continue;
      for (const [key, { reason, count }] of counts) add(sums, key, reason, count);
    }
    const byCount = [...sums.values()].sort((a, b) => b.count - a.count);
    return byCount.slice(0, limit).map(({ reason, count }) => ({ ...reason, count }));
  }

  #countsAt(index: number): Counts {
    const newest = this.#slices.at(-1);
    if (newest !== undefined && newest.index >= index) return newest.counts;
    const counts: Counts = new Map();
    this.#slices.push({ index, counts });
    while ((this.#slices[0]?.index ?? index) <= index - WINDOW_SLICES) this.#slices.shift();
    return counts;
  }
}

function add(counts: Counts, key: string, reason: FailureReason, count: number): void {
  const counted = counts.get(key);
  if (counted === undefined) counts.set(key, { reason, count });
  else counted.count += count;
}

/** Unique: neither names nor codes contain control characters. */
function toKey({ code, status, replica, model }: FailureReason): string {
  return `${code}\n${status}\n${replica === null ? '' : `=${replica}`}\n${model === null ? '' : `=${model}`}`;
}
