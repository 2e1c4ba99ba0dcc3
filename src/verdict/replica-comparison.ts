import { fillBlock, isFull, type OpenBlock } from './block-filling.ts';
import { type Comparison, compareBlock, EMPTY_COMPARISON } from './comparison.ts';
import { toFigures, toShortText, toWrongText } from './describe.ts';
import { DIMENSIONS, type Dimension, type Judgement, judge } from './judge.ts';
import type { Block, Observation } from './observation.ts';
import { continueSilence, isSilent, type Silence } from './silence.ts';

/** The dimensions that do not depend on the content of prompts. */
const NOT_BY_CONTENT: readonly Dimension[] = ['first_token', 'gaps', 'duration', 'errors'];

/** What has ended since the look before, and what is known at this one. */
interface Look {
  readonly nowMs: number;
  readonly observations: readonly Observation[];
  /** The names of its peers. */
  readonly peers: ReadonlySet<string>;
  /** Of an even share: what the replica gets of the turns. */
  readonly share: number;
}

/** The comparison of one replica with its peers, from its undrain to a verdict. Times are of one monotonic clock. */
export class ReplicaComparison {
  readonly #replica: string;
  #comparison: Comparison = EMPTY_COMPARISON;
  #block: OpenBlock;
  #silence: Silence;
  /** While a replica warms up, only errors and finish reasons count. */
  #isWarm = false;

  /** `nowMs`: when the replica was undrained. */
  constructor(replica: string, nowMs: number) {
    this.#replica = replica;
    this.#block = { own: [], peers: [], sinceMs: nowMs };
    this.#silence = { sinceMs: nowMs, expected: 0 };
  }

  /** The requests of the replica that have been compared. */
  get requests(): number {
    return this.#comparison.own;
  }

  /** The replica is warm: times count from now on. A block is either of the ramp or of the time after it. */
  endRamp(nowMs: number): void {
    this.#isWarm = true;
    this.#block = { own: [], peers: [], sinceMs: nowMs };
  }

  /** Takes what has ended since the look before. */
  look({ nowMs, observations, peers, share }: Look): void {
    const isPeer = (name: string) => peers.has(name);
    this.#block = fillBlock(this.#block, observations, { replica: this.#replica, isPeer });
    if (isFull(this.#block, nowMs)) {
      this.addBlock(this.#block);
      this.#block = { own: [], peers: [], sinceMs: nowMs };
    }
    this.#silence = continueSilence(this.#silence, {
      nowMs,
      ended: observations.some(({ replica }) => replica === this.#replica),
      peers: observations.filter(({ replica }) => isPeer(replica)),
      peerCount: peers.size,
      share,
    });
  }

  /** Compares a block that is complete. `look` makes such blocks of what it takes. */
  addBlock(block: Block): void {
    this.#comparison = compareBlock(this.#comparison, block, { comparesTimes: this.#isWarm });
  }

  /** Whether the replica, with so many requests in flight, has been silent for too long. */
  isSilent(inflight: number, nowMs: number): boolean {
    return isSilent(this.#silence, inflight, nowMs);
  }

  /**
   * What the comparison has shown so far. `falseAlarm`: the probability with which a replica that is like its peers may be
   * called bad. `sharesPrompts`: whether it gets the same kinds of prompts as they do. If not, what depends on their
   * content says nothing about the replica.
   */
  judge({
    falseAlarm,
    sharesPrompts,
  }: {
    readonly falseAlarm: number;
    readonly sharesPrompts: boolean;
  }): Judgement {
    return judge(this.#comparison, { falseAlarm, judged: sharesPrompts ? DIMENSIONS : NOT_BY_CONTENT });
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
