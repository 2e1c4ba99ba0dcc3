import { z } from 'zod';
import { ZoneClock } from '#base/zone-clock';
import { parsePeriod } from '#config/values';
import type { Step } from '#history';
import { AdminError } from '../admin-error.ts';

/** A span that was asked for: epoch milliseconds, and the zone in which words and dates were read. */
export interface AskedSpan {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly timeZone: string;
}

const TIME_FORM =
  'a time such as 2026-01-31T12:00:00Z, a date, a duration such as 2h or 7d, today, or yesterday';

const isZone = (zone: string): boolean => {
  try {
    return new ZoneClock(zone).zone === zone;
  } catch {
    return false;
  }
};

const time = (description: string) =>
  z
    .string()
    .max(64, TIME_FORM)
    .refine((text) => parseTime(text, 0, new ZoneClock('UTC')) !== null, TIME_FORM)
    .optional()
    .describe(description);

/** The query parameters of a span. */
export const spanParams = {
  since: time(
    'From when on: RFC 3339, a date, so long ago (`2h`, `7d`), `today` or `yesterday`. Dates and words are midnight in `time_zone`.',
  ),
  until: time('Until just before this time, in the same forms. Default: now.'),
  time_zone: z
    .string()
    .max(64)
    .refine(isZone, 'a time zone such as Europe/Berlin')
    .optional()
    .describe('A name of the IANA database, such as `Europe/Berlin`. Default: that of the gateway.'),
};

/** What a span was read as, in an answer. */
export const spanSchema = {
  since: z.iso
    .datetime()
    .describe('The beginning of the span: what was asked for, rounded as the answer needs.'),
  until: z.iso.datetime(),
  time_zone: z.string().describe('The zone in which dates, `today` and `yesterday` were read.'),
};

/** Reads `before`: `next` of the last answer. */
export const readBefore = z
  .string()
  .regex(/^\d{1,15}$/, 'a whole number of at most 15 digits')
  .transform(Number)
  .optional();

interface SpanQuery {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly time_zone?: string | undefined;
}

/** The refusal of a query parameter. `expected` does not repeat the given value. */
export function toInvalid(param: string, expected: string): AdminError {
  return new AdminError('invalid_request', { param, message: `${param}: ${expected}` });
}

/** Reads the parameters of a span; `defaultMs`: how long it is if they do not say. */
export function readSpan(
  { since, until, time_zone }: SpanQuery,
  { nowMs, defaultMs }: { readonly nowMs: number; readonly defaultMs: number },
): AskedSpan | AdminError {
  const timeZone = time_zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const clock = new ZoneClock(timeZone);
  const untilMs = (until === undefined ? null : parseTime(until, nowMs, clock)) ?? nowMs;
  const fromMs = (since === undefined ? null : parseTime(since, nowMs, clock)) ?? untilMs - defaultMs;
  return fromMs <= untilMs ? { fromMs, untilMs, timeZone } : toInvalid('since', 'it is after until');
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STEP_UNITS = { m: 60_000, h: HOUR_MS, d: DAY_MS } as const;

/** Reads the length of a step. */
export const stepParam = z
  .string()
  .regex(/^\d{1,4}[mhd]$/, 'whole minutes, hours or days, such as 5m, 1h or 1d')
  .transform((text) => ({
    count: Number.parseInt(text, 10),
    unit: text.at(-1) as keyof typeof STEP_UNITS,
  }))
  .refine(({ count }) => count > 0, 'at least 1m')
  .optional()
  .describe(
    'Divides the span into steps: `5m`, `1h`, `1d`. Steps of minutes reach back 7 days. Days begin at midnight in `time_zone`, or at the whole hour of UTC before it; hours and minutes count from the beginning of the span.',
  );

/** The steps of a span, at most so many; null: it is not divided. */
export function toStep(
  asked: z.infer<typeof stepParam>,
  { fromMs, untilMs, timeZone }: AskedSpan,
  most: number,
): Step | null | AdminError {
  if (asked === undefined) return null;
  const { count, unit } = asked;
  const ms = count * STEP_UNITS[unit];
  if ((untilMs - fromMs) / ms > most) return toInvalid('step', `at most ${most} in the span`);
  if (unit !== 'd') return { ms };
  const clock = new ZoneClock(timeZone);
  const starts: number[] = [];
  // Half a day more is the same day, however long those between are.
  for (let at = clock.midnight(fromMs); at < untilMs; at = clock.midnight(at + (count + 0.5) * DAY_MS))
    starts.push(at - (at % HOUR_MS));
  return { starts };
}

/** Epoch milliseconds of a time in any of the forms; null if it is none. */
function parseTime(text: string, nowMs: number, clock: ZoneClock): number | null {
  if (text === 'now') return nowMs;
  if (text === 'today') return clock.midnight(nowMs);
  // Half a day before midnight is yesterday, on the shortest of days, too.
  if (text === 'yesterday') return clock.midnight(clock.midnight(nowMs) - DAY_MS / 2);
  const agoMs = parsePeriod(text);
  if (agoMs !== null) return nowMs - agoMs;
  if (z.iso.date().safeParse(text).success) return clock.dayBegin(Date.parse(text));
  return z.iso.datetime({ offset: true }).safeParse(text).success ? Date.parse(text) : null;
}
