import { ZoneClock } from '#base/zone-clock';

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
    since: new Date(clock.dayBegin(first(index + 1))).toISOString(),
  }));
  const until = new Date(clock.dayBegin(Date.UTC(Number(year), Number(number), 1))).toISOString();
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
