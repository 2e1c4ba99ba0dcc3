import { RecentCount } from './recent-count.ts';

/** So many have gone well in a row as would by chance in one of a hundred cases: it is over. */
const LOG_UNLIKELY = Math.log(0.01);

/** Which share of something has failed in the last minute, and whether that is over. */
export class ShareWatch {
  readonly #all: RecentCount;
  readonly #failed: RecentCount;
  /** How many have gone well since the last one that failed. */
  #wellInARow = 0;

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#all = new RecentCount(nowMs);
    this.#failed = new RecentCount(nowMs);
  }

  note(hasFailed: boolean): void {
    this.#all.add();
    if (hasFailed) this.#failed.add();
    this.#wellInARow = hasFailed ? 0 : this.#wellInARow + 1;
  }

  /** How many there were in the last minute. */
  get count(): number {
    return this.#all.inLast(60);
  }

  get failedCount(): number {
    return this.#failed.inLast(60);
  }

  /**
   * The share that has failed; null if there were fewer than `least`, or if as many have gone well since as would not
   * by chance: a minute would be long to wait for what was mended.
   */
  shareOf(least: number): number | null {
    const { count, failedCount } = this;
    if (count < least || failedCount === 0) return null;
    const share = failedCount / count;
    const isOver = this.#wellInARow > 0 && this.#wellInARow * Math.log1p(-share) < LOG_UNLIKELY;
    return isOver ? null : share;
  }
}
