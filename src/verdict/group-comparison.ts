import type { Block } from '#verdict/blocks';
import { type Comparison, compareBlock, EMPTY_COMPARISON, joinComparisons } from './comparison.ts';
import { toFigures, toShortText, toWrongText } from './describe.ts';
import { DIMENSIONS, type Dimension, type Judgement, judge, toRequestsNeeded } from './judge.ts';

/** The dimensions that do not depend on the content of prompts. */
const NOT_BY_CONTENT: readonly Dimension[] = ['first_token', 'gaps', 'duration', 'errors'];

/** How sure a verdict must be. */
export interface Certainty {
  /** The probability with which a replica that is like its peers may be called bad. */
  readonly falseAlarm: number;
  /** The probability with which a replica that is 20 % slower may be called good. */
  readonly missed: number;
}

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

  /**
   * What the comparison has shown so far. `sharesPrompts`: whether both sides get the same kinds of prompts. If not, what
   * depends on their content says nothing about a replica.
   */
  judge({
    sharesPrompts,
    ...certainty
  }: Certainty & {
    readonly sharesPrompts: boolean;
  }): Judgement {
    return judge(this.#comparison, { ...certainty, judged: sharesPrompts ? DIMENSIONS : NOT_BY_CONTENT });
  }

  /** About how many further requests are needed until it is good; null: more of the same will not tell. */
  requestsNeeded({ missed }: Pick<Certainty, 'missed'>): number | null {
    return toRequestsNeeded(this.#comparison, missed);
  }

  /** Says what is wrong, each with its figures. */
  explain({ wrong }: Judgement): string {
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
