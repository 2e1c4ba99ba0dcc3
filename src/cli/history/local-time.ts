/** Formats times in the clock of a zone. */
export class LocalTime {
  readonly zone: string;
  readonly #format: Intl.DateTimeFormat;

  /** Throws a RangeError if there is no such zone. */
  constructor(zone: string) {
    this.zone = zone;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  }

  /** `2026-11-24T14:00:00+01:00`; `-` if the value is no time. */
  toRfc3339(value: unknown): string {
    return this.#read(value, ({ date, clock, offset }) => `${date}T${clock}${offset}`);
  }

  /** `2026-11-24 14:00:00`, for a table whose zone is said elsewhere; `-` if the value is no time. */
  toCell(value: unknown): string {
    return this.#read(value, ({ date, clock }) => `${date} ${clock}`);
  }

  #read(
    value: unknown,
    toText: (parts: { readonly date: string; readonly clock: string; readonly offset: string }) => string,
  ): string {
    const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
    if (!Number.isFinite(ms)) return '-';
    const parts = Object.fromEntries(this.#format.formatToParts(ms).map((part) => [part.type, part.value]));
    const offset = (parts.timeZoneName ?? '').replace('GMT', '');
    return toText({
      date: `${parts.year}-${parts.month}-${parts.day}`,
      clock: `${parts.hour}:${parts.minute}:${parts.second}`,
      // Node 24 has no offset for UTC.
      offset: offset === '' || offset === '+00:00' ? 'Z' : offset,
    });
  }
}
