import { expect, it } from 'vitest';
import { dayOf, toMonth } from '../../src/statement/calendar.ts';

it.each([
  ['2026-10', 'Europe/Berlin', '2026-09-30T22:00:00.000Z', '2026-10-31T23:00:00.000Z', 31],
  ['2026-02', 'UTC', '2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z', 28],
  ['2028-02', 'Asia/Kolkata', '2028-01-31T18:30:00.000Z', '2028-02-29T18:30:00.000Z', 29],
  ['2026-12', 'Pacific/Kiritimati', '2026-11-30T10:00:00.000Z', '2026-12-31T10:00:00.000Z', 31],
])('%s in %s is from %s to just before %s', (month, zone, since, until, count) => {
  expect(toMonth(month, zone)).toMatchObject({ since, until, days: { length: count } });
});

it('has a day of 25 hours where the clocks go back, and of 23 where they go forward', () => {
  const hours = (month: string, index: number) => {
    const days = toMonth(month, 'Europe/Berlin')?.days ?? [];
    const [from, to] = [days[index], days[index + 1]].map((day) => Date.parse(day?.since ?? ''));
    return ((to ?? 0) - (from ?? 0)) / 3_600_000;
  };
  expect([hours('2026-10', 24), hours('2026-03', 28), hours('2026-03', 27)]).toEqual([25, 23, 24]);
});

it('begins a day without a midnight with its first moment', () => {
  const days = toMonth('2018-11', 'America/Sao_Paulo')?.days ?? [];
  expect(days.slice(2, 5)).toEqual([
    { day: '2018-11-03', since: '2018-11-03T03:00:00.000Z' },
    { day: '2018-11-04', since: '2018-11-04T03:00:00.000Z' },
    { day: '2018-11-05', since: '2018-11-05T02:00:00.000Z' },
  ]);
});

it('finds the day of each moment', () => {
  const { days = [] } = toMonth('2026-11', 'Europe/Berlin') ?? {};
  expect(dayOf(days, '2026-10-31T23:00:00.000Z')).toBe('2026-11-01');
  expect(dayOf(days, '2026-11-01T22:59:59.999Z')).toBe('2026-11-01');
  expect(dayOf(days, '2026-11-01T23:00:00.000Z')).toBe('2026-11-02');
  expect(dayOf(days, '2026-11-30T22:59:59.999Z')).toBe('2026-11-30');
});

it.each(['2026-13', '2026-00', '26-01', '0026-01', '2026-1', '', 'November'])('knows no month %j', (text) => {
  expect(toMonth(text, 'UTC')).toBeNull();
});
