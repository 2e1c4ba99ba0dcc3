import type { Block } from '#verdict/blocks';
import type { Judgement } from '#verdict/judgement';
import { type Comparison, compareBlock, EMPTY_COMPARISON, joinComparisons } from './comparison.ts';
import { toFigures, toShortText, toWrongText } from './describe.ts';
import { type Dimension, type JudgeSettings, judgeComparison } from './judge.ts';

/** The comparison of one or several replicas with their peers, block after block. */
export class GroupComparison {
  #comparison: Comparison;

  /** `known`: what there is to begin with, by the requests of each who has compared the same replicas. */
  constructor(known: readonly Comparison[] = []) {
    this.#comparison = known.reduce(joinComparisons, EMPTY_COMPARISON);
  }

  /** All that it knows. */
  get facts(): Comparison {
    return this.#comparison;
  }

  /** The requests of the judged replicas that have been compared. */
  get requests(): number {
    return this.#comparison.own;
  }

  /** Those of their peers. */
  get peerRequests(): number {
    return this.#comparison.peers;
  }

  /**
   * Adds a block. `comparesTimes`: while a replica warms up, only errors and finish reasons count. `harmlessSlowness`: how
   * much slower it may be, if not 1.05 times.
   */
  addBlock(
    block: Block,
    settings: { readonly comparesTimes: boolean; readonly harmlessSlowness?: number },
  ): void {
    this.#comparison = compareBlock(this.#comparison, block, settings);
  }

  /** What the comparison has shown so far. */
  judge(settings: JudgeSettings): Judgement<Dimension> {
    return judgeComparison(this.#comparison, settings);
  }

  /** Says what is wrong, each with its figures. */
  explain(wrong: readonly Dimension[]): string {
    return toWrongText(this.#comparison, wrong);
  }

  /** The figures that people follow, in few words. */
  toText(): string {
    return toShortText(this.#comparison);
  }

  /** The figures by the names that the admin API has for them. Unknown ones are left out. */
  toFigures(): Readonly<Record<string, number>> {
    return toFigures(this.#comparison);
  }
}
