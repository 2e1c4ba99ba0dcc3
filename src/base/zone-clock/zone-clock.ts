/*
 * The clock of a time zone: what it shows, and when it shows a time.
 *
 * It never knows why somebody asks: days of a span, of a month, or times for people.
 */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FARTHEST_MS = 16 * HOUR_MS; // from UTC: a clock is at most 15 hours ahead

/** The clock of a zone. What it shows is told as if it were the time of UTC: milliseconds since 1970, in whole seconds. */
export class ZoneClock {
  readonly zone: string;
  readonly #format: Intl.DateTimeFormat;

  /** Throws a RangeError if there is no such zone. */
  constructor(zone: string) {
    this.zone = zone;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** What the clock shows at a moment. */
  wallMs(ms: number): number {
    const parts = this.#format.formatToParts(ms);
    const of = (type: Intl.DateTimeFormatPartTypes) =>
      Number(parts.find((part) => part.type === type)?.value);
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
  }

  /** When the day of a moment begins. */
  midnight(ms: number): number {
    return this.dayBegin(this.wallMs(ms));
  }

  /** When the day begins that has a time of the clock. */
  dayBegin(wallMs: number): number {
    return this.#toEpochMs(Math.floor(wallMs / DAY_MS) * DAY_MS);
  }

  /** When the clock shows a time: twice if it is set back over it, never if it leaves it out. */
  momentsOf(wallMs: number): readonly number[] {
    // It shows each day once: what it shows never goes back by more than 3 hours.
    const offsets = new Set([wallMs - FARTHEST_MS, wallMs + FARTHEST_MS].map((ms) => this.wallMs(ms) - ms));
    return [...offsets].map((offset) => wallMs - offset).filter((ms) => this.wallMs(ms) === wallMs);
  }

  /**
   * When the clock first shows a time. Where it leaves the time out, as some zones do with midnight, when it shows the first
   * time after it.
   */
  #toEpochMs(wallMs: number): number {
    const moments = this.momentsOf(wallMs);
    if (moments.length > 0) return Math.min(...moments);
    let [low, high] = [wallMs - FARTHEST_MS, wallMs + FARTHEST_MS];
    while (high - low > 1_000) {
      const middle = Math.floor((low + high) / 2_000) * 1_000;
      if (this.wallMs(middle) >= wallMs) high = middle;
      else low = middle;
    }
    return high;
  }
}
