import { ZoneClock } from '#base/zone-clock';

/** Formats times in the clock of a zone. */
export class LocalTime {
  readonly #clock: ZoneClock;
  readonly #offset: Intl.DateTimeFormat;

  /** Throws a RangeError if there is no such zone. */
  constructor(zone: string) {
    this.#clock = new ZoneClock(zone);
    this.#offset = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  }

  get zone(): string {
    return this.#clock.zone;
  }

  /** `2026-11-24T14:00:00+01:00`; `-` if the value is no time. */
  toRfc3339(value: unknown): string {
    const ms = toMs(value);
    return ms === null ? '-' : this.#toText(ms, 'T') + this.#toOffset(ms);
  }

  /**
   * `2026-11-24 14:00:00`, for a table whose zone is said elsewhere; with the offset if the clock shows it twice, as it is set
   * back; `-` if the value is no time.
   */
  toCell(value: unknown): string {
    const ms = toMs(value);
    if (ms === null) return '-';
    const isTwice = this.#clock.momentsOf(this.#clock.wallMs(ms)).length > 1;
    return this.#toText(ms, ' ') + (isTwice ? this.#toOffset(ms) : '');
  }

  #toText(ms: number, separator: string): string {
    return new Date(this.#clock.wallMs(ms)).toISOString().slice(0, 19).replace('T', separator);
  }

  #toOffset(ms: number): string {
    return this.#offset.format(ms).replace(/.*GMT/, '').replace('+00:00', 'Z');
  }
}

function toMs(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(ms) ? ms : null;
}
