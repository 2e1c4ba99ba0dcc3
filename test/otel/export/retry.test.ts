import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextDelayMs, parseRetryAfterMs } from '../../../otel/export/retry.ts';

const NOW = Date.UTC(2026, 10, 21, 8, 0, 0);

describe('the delay before the next try', () => {
  const backOff = { initialMs: 500, maxMs: 5000 };

  test.each([
    { failures: 1, ceilingMs: 500 },
    { failures: 2, ceilingMs: 1000 },
    { failures: 4, ceilingMs: 4000 },
    { failures: 5, ceilingMs: 5000 },
    { failures: 10_000, ceilingMs: 5000 },
  ])('after $failures failures is anything up to $ceilingMs ms', ({ failures, ceilingMs }) => {
    expect(nextDelayMs({ ...backOff, failures, random: 0 })).toBe(0);
    expect(nextDelayMs({ ...backOff, failures, random: 0.5 })).toBe(ceilingMs / 2);
  });

  test('is never shorter than Retry-After, nor than the first back-off when that is shorter still', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 60_000 }),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (retryAfterMs, random) => {
          const delayMs = nextDelayMs({ ...backOff, failures: 1, retryAfterMs, random });
          expect(delayMs).toBeGreaterThanOrEqual(Math.max(retryAfterMs, backOff.initialMs));
          expect(delayMs).toBeLessThan(Math.max(retryAfterMs, backOff.initialMs) + backOff.initialMs);
        },
      ),
    );
  });
});

describe('Retry-After', () => {
  test.each([
    { header: '0', ms: 0 },
    { header: '2', ms: 2000 },
    { header: ' 7 ', ms: 7000 },
    { header: '3600', ms: 60_000 },
    { header: '99999999999999999999', ms: 60_000 },
    { header: 'Sat, 21 Nov 2026 08:00:05 GMT', ms: 5000 },
    { header: 'Sat, 21 Nov 2026 07:59:00 GMT', ms: 0 },
    { header: 'Saturday, 21-Nov-26 08:00:05 GMT', ms: 5000 },
    { header: '-1', ms: undefined },
    { header: '1.5', ms: undefined },
    { header: 'soon', ms: undefined },
    { header: '', ms: undefined },
    { header: undefined, ms: undefined },
  ])('$header is read as $ms ms', ({ header, ms }) => {
    expect(parseRetryAfterMs(header, NOW)).toBe(ms);
  });
});
