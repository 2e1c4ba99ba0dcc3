import { isFull, thinIndices } from '#verdict/blocks';
import { PairedComparison, type PairObservation } from '#verdict/pairs';
import type { Groups } from '../groups/find-groups.ts';
import type { PairLog } from './pair-log.ts';

/**
 * The comparison of shadows with those that they are compared with, over the pairs since a time, as far as they are kept.
 * Which pairs make a block depends on the pairs alone, so the evidence is the same however often one looks.
 */
export class RunningPairs {
  readonly comparison: PairedComparison;
  readonly #log: PairLog;
  #next: number;
  #block: PairObservation[] = [];
  #blockSinceMs: number;

  /** `sinceMs`: monotonic, as the times of the log. `tolerance`: how many times as slow a shadow may be. */
  constructor(log: PairLog, sinceMs: number, tolerance: number) {
    this.comparison = new PairedComparison(tolerance);
    this.#log = log;
    this.#next = log.numberSince(sinceMs);
    this.#blockSinceMs = sinceMs;
  }

  /** Pairs that are not compared yet: those of a block that is not full. */
  get waiting(): number {
    return this.#block.length;
  }

  /** The shadows among the candidate that have had all the copies that they may have, and end none. */
  readonly silentOnes = ({ candidate }: Groups): readonly string[] =>
    [...candidate].filter((name) => this.#log.silentMsOf(name) !== null);

  /** How many requests were not copied to these shadows, by reason. */
  readonly skipsOf = (names: readonly string[]): Readonly<Record<string, number>> => {
    const skips: Record<string, number> = {};
    for (const name of names)
      for (const [why, count] of this.#log.skippedOf(name)) skips[why] = (skips[why] ?? 0) + count;
    return skips;
  };

  /** Looks at all pairs that have ended since. */
  advance({ candidate, baseline }: Groups): void {
    this.#next = Math.max(this.#next, this.#log.first);
    while (this.#next < this.#log.end) {
      const number = this.#next++;
      const pair = this.#log.pairOf(number);
      if (!candidate.has(pair.shadow) || !baseline.has(pair.primary)) continue;
      this.#block.push(pair);
      const endedMs = this.#log.endedMsOf(number);
      const block = this.#block;
      const size = { spanMs: endedMs - this.#blockSinceMs, own: block.length, peers: block.length };
      if (!isFull(size)) continue;
      this.comparison.addBlock(thinIndices(block.length, 'own').flatMap((index) => block[index] ?? []));
      this.#block = [];
      this.#blockSinceMs = endedMs;
    }
  }
}
