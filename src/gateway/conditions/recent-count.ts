/** How many seconds it remembers. */
const SECONDS = 60;

/** Counts what happens, second by second, for a minute. */
export class RecentCount {
  readonly #nowMs: () => number;
  readonly #counts = new Uint32Array(SECONDS);
  /** The second of the newest count. */
  #latest: number;

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#latest = Math.floor(nowMs() / 1_000);
  }

  add(times = 1): void {
    this.#forget();
    const place = this.#latest % SECONDS;
    this.#counts[place] = (this.#counts[place] ?? 0) + times;
  }

  /** How often it happened in the last `seconds`, at most sixty. */
  inLast(seconds: number): number {
    this.#forget();
    let sum = 0;
    for (let back = 0; back < seconds; back += 1)
      sum += this.#counts[(this.#latest - back + SECONDS) % SECONDS] ?? 0;
    return sum;
  }

  #forget(): void {
    const second = Math.floor(this.#nowMs() / 1_000);
    const passed = Math.min(SECONDS, second - this.#latest);
    for (let ahead = 1; ahead <= passed; ahead += 1) this.#counts[(this.#latest + ahead) % SECONDS] = 0;
    this.#latest = second;
  }
}
