import { ZoneClock } from '#base/zone-clock';

const MINUTE_MS = 60_000;

/** Formats times in the clock of a zone. */
export class LocalTime {
  readonly #clock: ZoneClock;

  /** Throws a RangeError if there is no such zone. */
  constructor(zone: string) {
    this.#clock = new ZoneClock(zone);
  }

  get zone(): string {
    return this.#clock.zone;
  }

  /** `2026-11-24T14:00:00+01:00`; `-` if the value is no time. */
  toRfc3339(value: unknown): string {
    const ms = toMs(value);
    if (ms === null) return '-';
    const wallMs = this.#clock.wallMs(ms);
    return new Date(wallMs).toISOString().slice(0, 19) + toOffset(Math.round((wallMs - ms) / MINUTE_MS));
  }

  /** `2026-11-24 14:00:00`, for a table whose zone is said elsewhere; `-` if the value is no time. */
  toCell(value: unknown): string {
    const ms = toMs(value);
    return ms === null ? '-' : new Date(this.#clock.wallMs(ms)).toISOString().slice(0, 19).replace('T', ' ');
  }
}

function toMs(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(ms) ? ms : null;
}

function toOffset(minutes: number): string {
  if (minutes === 0) return 'Z';
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  const pad = (count: number) => String(count).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${pad(hours)}:${pad(rest)}`;
}
