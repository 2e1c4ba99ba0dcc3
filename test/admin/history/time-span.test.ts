import { expect, it } from 'vitest';
import { AdminError } from '../../../src/admin/admin-error.ts';
import { stepParam, toStep } from '../../../src/admin/history/time-span.ts';

const HOUR_MS = 3_600_000;

function daysOf(step: string, since: string, until: string, timeZone: string): readonly string[] | undefined {
  const span = { fromMs: Date.parse(since), untilMs: Date.parse(until), timeZone };
  const read = toStep(stepParam.parse(step), span, 1_000);
  if (read === null || read instanceof AdminError || 'ms' in read) return undefined;
  return read.starts.map((ms) => new Date(ms).toISOString());
}

it('days begin at midnight in the zone, also where a clock change makes one 23 or 25 hours long', () => {
  expect(daysOf('1d', '2026-03-28T09:00:00Z', '2026-03-30T22:00:00Z', 'Europe/Berlin')).toEqual([
    '2026-03-27T23:00:00.000Z',
    '2026-03-28T23:00:00.000Z',
    '2026-03-29T22:00:00.000Z',
  ]);
  expect(daysOf('1d', '2026-10-24T22:00:00Z', '2026-10-26T12:00:00Z', 'Europe/Berlin')).toEqual([
    '2026-10-24T22:00:00.000Z',
    '2026-10-25T23:00:00.000Z',
  ]);
});

it('several days count from the day in which the span begins, over clock changes too', () => {
  expect(daysOf('7d', '2026-10-20T12:00:00Z', '2026-11-05T00:00:00Z', 'America/New_York')).toEqual([
    '2026-10-20T04:00:00.000Z',
    '2026-10-27T04:00:00.000Z',
    '2026-11-03T05:00:00.000Z',
  ]);
});

it('days of a zone that is not whole hours from UTC begin at the whole hour before', () => {
  expect(daysOf('1d', '2026-11-20T18:30:00Z', '2026-11-22T00:00:00Z', 'Asia/Kolkata')).toEqual([
    '2026-11-20T18:00:00.000Z',
    '2026-11-21T18:00:00.000Z',
  ]);
});

it('hours and minutes have one length, and there are not too many', () => {
  const span = { fromMs: 0, untilMs: 100 * HOUR_MS, timeZone: 'UTC' };
  expect(toStep(stepParam.parse('24h'), span, 10)).toEqual({ ms: 24 * HOUR_MS });
  expect(toStep(undefined, span, 10)).toBeNull();
  const tooMany = toStep(stepParam.parse('1h'), span, 10);
  expect(tooMany instanceof AdminError && tooMany.toJson()).toContain('step: at most 10 in the span');
  expect(['0d', '1w', '-1d', '1.5h', '99999m'].map((text) => stepParam.safeParse(text).success)).toEqual(
    Array.from({ length: 5 }, () => false),
  );
});
