import { expect, it } from 'vitest';
import { ZoneClock } from '#base/zone-clock';

it.each([
  ['UTC', '2026-11-28T15:00:00Z', '2026-11-28T00:00:00.000Z'],
  ['Europe/Berlin', '2026-11-28T22:59:59Z', '2026-11-27T23:00:00.000Z'],
  ['Europe/Berlin', '2026-11-28T23:00:00Z', '2026-11-28T23:00:00.000Z'],
  // A day of 25 hours, near its end.
  ['Europe/Berlin', '2026-10-25T22:30:00Z', '2026-10-24T22:00:00.000Z'],
  ['Asia/Kathmandu', '2026-11-28T18:14:59Z', '2026-11-27T18:15:00.000Z'],
  // The clock leaves midnight out: the day begins at one o'clock.
  ['Africa/Cairo', '2026-04-24T12:00:00Z', '2026-04-23T22:00:00.000Z'],
  // The clock shows the last hour of the day before twice.
  ['Africa/Cairo', '2026-10-30T12:00:00Z', '2026-10-29T22:00:00.000Z'],
  ['Pacific/Kiritimati', '2026-11-28T10:00:00Z', '2026-11-28T10:00:00.000Z'],
])('the day in %s at %s begins at %s', (zone, now, begin) => {
  expect(new Date(new ZoneClock(zone).midnight(Date.parse(now))).toISOString()).toBe(begin);
});

it('refuses a zone that there is not', () => {
  expect(() => new ZoneClock('Mars')).toThrow(RangeError);
});
