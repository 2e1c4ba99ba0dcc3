/*
 * Durations, sizes and shares as people write them, in the configuration and in options. Each is parsed to what the gateway uses,
 * and printed back.
 *
 * It never knows which key or option has the value.
 */

const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

const BYTES_PER_UNIT = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
} as const;

type SizeUnit = keyof typeof BYTES_PER_UNIT;

/** What every duration matches, for JSON Schema: a regular expression without anchors and look-ahead, for any engine. */
export const DURATION_PATTERN = '(?:\\d[\\d.]*(?:ms|s|m|h))+';

/**
 * Parses `500ms`, `10s`, `1.5s`, `15m`, `1h` or `1h30m` to milliseconds: units in falling order, each at most once. Null
 * if the text is not a duration or not a whole number of milliseconds.
 */
export function parseDuration(text: string): number | null {
  let sumMs = 0;
  let at = 0;
  let lastUnitMs = Number.POSITIVE_INFINITY;
  for (const [part, count = '', unit] of text.matchAll(/(\d[\d.]*)(ms|s|m|h)/gy)) {
    const unitMs = MS_PER_UNIT[unit as keyof typeof MS_PER_UNIT];
    const ms = multiply(count, unitMs);
    if (ms === null || unitMs >= lastUnitMs) return null;
    sumMs += ms;
    at += part.length;
    lastUnitMs = unitMs;
  }
  return at > 0 && at === text.length ? sumMs : null;
}

/** Multiplies a decimal number by a unit without rounding. Null if the product is not a whole number. */
function multiply(decimal: string, unit: number): number | null {
  const [, whole, fraction = ''] = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(decimal) ?? [];
  if (whole === undefined) return null;
  const scale = 10 ** fraction.length;
  const part = Number(fraction) * unit;
  return part % scale === 0 ? Number(whole) * unit + part / scale : null;
}

/** Prints milliseconds as the shortest text that `parseDuration` parses to the same number. */
export function printDuration(ms: number): string {
  if (ms === 0) return '0s';
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms % MS_PER_UNIT[unit] === 0) return `${ms / MS_PER_UNIT[unit]}${unit}`;
  }
  return `${ms}ms`;
}

const MS_PER_DAY = 86_400_000;

/** Parses whole days, `35d`, or a duration to milliseconds; null if the text is neither. */
export function parsePeriod(text: string): number | null {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? [];
  return days === undefined ? parseDuration(text) : Number(days) * MS_PER_DAY;
}

/** Prints milliseconds as the shortest text that `parsePeriod` parses to the same number. */
export function printPeriod(ms: number): string {
  return ms > 0 && ms % MS_PER_DAY === 0 ? `${ms / MS_PER_DAY}d` : printDuration(ms);
}

/** Parses `5%` or `0.25%`, from 0% to 100%, to a share; null if the text is neither. */
export function parsePercent(text: string): number | null {
  return /^(?:\d{1,2}(?:\.\d{1,2})?|100)%$/.test(text) ? Number.parseFloat(text) / 100 : null;
}

/** Parses `32MiB`, `512KiB`, `1.5GB` or `4096` to bytes; null if the text is not a size in whole bytes. */
export function parseSize(text: string): number | null {
  const match = /^([\d.]+)(B|KiB|MiB|GiB|kB|KB|MB|GB)?$/.exec(text);
  return match === null ? null : multiply(match[1] ?? '', BYTES_PER_UNIT[(match[2] ?? 'B') as SizeUnit]);
}

/** Prints bytes as the shortest text that `parseSize` parses to the same number; plain bytes as a number. */
export function printSize(bytes: number): string | number {
  if (bytes === 0) return 0;
  for (const unit of ['GiB', 'MiB', 'KiB', 'GB', 'MB', 'kB'] as const) {
    if (bytes % BYTES_PER_UNIT[unit] === 0) return `${bytes / BYTES_PER_UNIT[unit]}${unit}`;
  }
  return bytes;
}
