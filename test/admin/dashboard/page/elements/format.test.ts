import { describe, expect, test } from 'vitest';
import {
  counted,
  formatAgo,
  formatBytes,
  formatCount,
  formatMoment,
  formatMs,
  formatRate,
  formatShare,
  withLocalTimes,
} from '../../../../../src/admin/dashboard/page/elements/format.js';

test.each([
  [null, '–'],
  [0.4, '0.4 ms'],
  [9.94, '9.9 ms'],
  [9.96, '10 ms'],
  [312.4, '312 ms'],
  [999.4, '999 ms'],
  [999.6, '1.00 s'],
  [2_045, '2.04 s'],
  [9_996, '10.0 s'],
  [59_940, '59.9 s'],
  [59_960, '1 min 00 s'],
  [125_000, '2 min 05 s'],
])('a duration of %s ms is %s', (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

test.each([
  [0, '0'],
  [0.01, '<0.1'],
  [0.26, '0.3'],
  [12.34, '12.3'],
  [99.96, '100'],
  [12_345.6, '12,346'],
])('a rate of %s per second is %s', (rate, text) => {
  expect(formatRate(rate)).toBe(text);
});

test.each([
  [0, 0, '–'],
  [0, 7, '0 %'],
  [1, 10_000, '<0.1 %'],
  [1, 70, '1.4 %'],
  [50, 100, '50 %'],
])('%s of %s is %s', (part, all, text) => {
  expect(formatShare(part, all)).toBe(text);
});

test.each([
  [-5, '0 s'],
  [59_000, '59 s'],
  [61_000, '1 min'],
  [7_200_000, '2 h'],
  [260_000_000, '3 days'],
])('%s ms ago is %s', (ms, text) => {
  expect(formatAgo(ms)).toBe(text);
});

describe('a count', () => {
  test('has separators, and is a dash if unknown', () => {
    expect(formatCount(16_384)).toBe('16,384');
    expect(formatCount(undefined)).toBe('–');
  });

  test('agrees with its noun', () => {
    expect(counted(1, 'request')).toBe('1 request');
    expect(counted(2, 'request')).toBe('2 requests');
    expect(counted(0, 'day')).toBe('0 days');
  });
});

test.each([
  [0, '0 B'],
  [1_023, '1,023 B'],
  [1_536, '1.5 KiB'],
  [48_300_000, '46.1 MiB'],
  [1_073_741_824, '1.0 GiB'],
])('%s bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test('a moment of another day has its date', () => {
  const now = '2026-11-21T12:10:00.000Z';
  expect(formatMoment(now, now)).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(formatMoment('2026-11-18T12:10:00.000Z', now)).toMatch(/^Nov 18, 2026, \d\d:/);
});

test('a time in a text of the gateway is that of the reader', () => {
  const local = formatMoment('2026-11-18T12:10:00Z', Date.now());
  expect(withLocalTimes('Events before 2026-11-18T12:10:00Z are not kept.')).toBe(
    `Events before ${local} are not kept.`,
  );
  expect(withLocalTimes('No request of this tenant.')).toBe('No request of this tenant.');
});
