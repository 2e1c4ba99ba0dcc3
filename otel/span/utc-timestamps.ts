/**
 * Formats times as RFC 3339 in UTC with milliseconds. Date takes 1.4 µs to format a time. Here it does so once per
 * second, because the requests of one second differ only in their milliseconds.
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
