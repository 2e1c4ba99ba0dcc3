/** A day of a month in a zone. `since`: when it begins, RFC 3339 in UTC. */
export interface Day {
  readonly day: string;
  readonly since: string;
}

/** A month in a zone: from `since` to just before `until`, RFC 3339 in UTC. */
export interface Month {
  readonly days: readonly Day[];
  readonly since: string;
  readonly until: string;
}

/** The days of a month such as `2026-11`; null: it is none. Throws a RangeError if there is no such zone. */
export function toMonth(month: string, timeZone: string): Month | null {
  const [, year, number] = /^([1-9]\d{3})-(0[1-9]|1[0-2])$/.exec(month) ?? [];
  if (year === undefined || number === undefined) return null;
  const clock = new ZoneClock(timeZone);
  const first = (index: number) => Date.UTC(Number(year), Number(number) - 1, index);
  const count = new Date(Date.UTC(Number(year), Number(number), 0)).getUTCDate();
  const days = Array.from({ length: count }, (_, index) => ({
    day: new Date(first(index + 1)).toISOString().slice(0, 10),
    since: new Date(clock.toEpochMs(first(index + 1))).toISOString(),
  }));
  const until = new Date(clock.toEpochMs(Date.UTC(Number(year), Number(number), 1))).toISOString();
  return { days, since: days[0]?.since ?? until, until };
}

/** The day that a time is in, of days in their order. A time before the first is in the first. */
export function dayOf(days: readonly Day[], ts: string): string {
  let [low, high] = [0, days.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((days[middle]?.since ?? '') <= ts) low = middle;
    else high = middle - 1;
  }
  return days[low]?.day ?? '';
}

/** The clock of a zone. */
class ZoneClock {
  readonly #format: Intl.DateTimeFormat;

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /**
   * When the clock first shows a time, which is given as if it were of UTC. Where it leaves the time out, as some zones do
   * with midnight, when it shows the first time after it.
   */
  toEpochMs(wallMs: number): number {
    const hourMs = 3_600_000;
    // The clock of a zone is at most 15 hours ahead of UTC, and shows each day once: what it shows never goes back by more than 3 hours.
    let [low, high] = [wallMs - 16 * hourMs, wallMs + 16 * hourMs];
    const offsets = new Set([this.#offsetMs(low), this.#offsetMs(high)]);
    const exact = [...offsets].map((offset) => wallMs - offset).filter((ms) => this.#wallMs(ms) === wallMs);
    if (exact.length > 0) return Math.min(...exact);
    while (high - low > 1_000) {
      const middle = Math.floor((low + high) / 2_000) * 1_000;
      if (this.#wallMs(middle) >= wallMs) high = middle;
      else low = middle;
    }
    return high;
  }

  #offsetMs(ms: number): number {
    return this.#wallMs(ms) - ms;
  }

  #wallMs(ms: number): number {
    const parts = this.#format.formatToParts(ms);
    const of = (type: Intl.DateTimeFormatPartTypes) =>
      Number(parts.find((part) => part.type === type)?.value);
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
  }
}
