/**
 * Writes times as RFC 3339 in UTC with milliseconds. Date formats 1.4 µs long; here it does so once per second, since
 * the requests of one second differ in their milliseconds only.
 */
export class UtcTimestamps {
  #second = Number.NaN;
  /** `2026-11-21T08:00:00.` */
  #secondText = '';

  /** `epochMs`: whole milliseconds. */
  toText(epochMs: number): string {
    const second = Math.floor(epochMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    }
    return `${this.#secondText}${String(epochMs - second * 1000).padStart(3, '0')}Z`;
  }
}
