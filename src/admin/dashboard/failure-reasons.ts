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

/** How many reasons are counted separately in one slice. The others lose their replica and model. */
const MAX_REASONS = 1_024;

/** Counts the reasons of failures in each slice of the last minute. Slices are given in ascending order. */
export class FailureReasons {
  /** The newest is last. Slices without a failure are absent. */
  readonly #slices: { readonly index: number; readonly counts: Map<string, CountedReason> }[] = [];

  /** Counts a request that failed in this slice. */
  add(reason: FailureReason, slice: number): void {
    const counts = this.#countsAt(slice);
    const key = toKey(reason);
    const isKept = counts.has(key) || counts.size < MAX_REASONS;
    const kept = isKept ? reason : { ...reason, replica: OTHER_NAMES, model: OTHER_NAMES };
    count(counts, isKept ? key : toKey(kept), kept, 1);
  }

  /** At most `limit` reasons since the slice `first`, by their count. */
  listFrom(first: number, limit: number): readonly CountedReason[] {
    const sums = new Map<string, CountedReason>();
    for (const { index, counts } of this.#slices) {
      if (index < first) continue;
      for (const [key, reason] of counts) count(sums, key, reason, reason.count);
    }
    return [...sums.values()].sort((a, b) => b.count - a.count).slice(0, limit);
  }

  #countsAt(index: number): Map<string, CountedReason> {
    const newest = this.#slices.at(-1);
    if (newest !== undefined && newest.index >= index) return newest.counts;
    const counts = new Map<string, CountedReason>();
    this.#slices.push({ index, counts });
    while ((this.#slices[0]?.index ?? index) <= index - WINDOW_SLICES) this.#slices.shift();
    return counts;
  }
}

function count(counts: Map<string, CountedReason>, key: string, reason: FailureReason, by: number): void {
  counts.set(key, { ...reason, count: (counts.get(key)?.count ?? 0) + by });
}

function toKey({ code, status, replica, model }: FailureReason): string {
  return JSON.stringify([code, status, replica, model]);
}
