/** Over which time the rate is measured, and the least time between two measurements. */
const WINDOW_MS = 5_000;
const INTERVAL_MS = 500;

/** How fast something fills up. */
export class FillRate {
  readonly #nowMs: () => number;
  /** Oldest first; the oldest is about a window old. */
  #samples: { readonly atMs: number; readonly fill: number }[] = [];

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** In how many milliseconds it is full, if it goes on as in the last seconds. Null: it does not fill up. */
  untilFull(fill: number): number | null {
    const atMs = this.#nowMs();
    if (atMs - (this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= INTERVAL_MS)
      this.#samples.push({ atMs, fill });
    while (atMs - (this.#samples[1]?.atMs ?? atMs) >= WINDOW_MS) this.#samples.shift();
    const oldest = this.#samples[0];
    if (oldest === undefined || fill <= oldest.fill || fill >= 1) return null;
    return ((1 - fill) / (fill - oldest.fill)) * (atMs - oldest.atMs);
  }
}
