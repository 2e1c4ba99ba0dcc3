import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDuration, parsePercent, parseSize, printDuration, printSize } from '#config/values';

describe('a duration', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['0s', 0],
    ['1h30m', 5_400_000],
    ['1m30s', 90_000],
    ['1h1ms', 3_600_001],
    ['1.5s', 1_500],
    ['0.5h', 1_800_000],
    ['1.1s', 1_100],
  ])('%s is read in milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '10',
    '-1s',
    '1 s',
    '1h 30m',
    '1d',
    '30m1h',
    '1s1s',
    '1.5ms',
    '1.s',
    '.5s',
    '1..5s',
    '1s5',
    '10S',
    's',
  ])('%j is refused', (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it('of any length is parsed as it was printed', () => {
    fc.assert(
      fc.property(fc.nat({ max: 86_400_000 }), (ms) => {
        expect(parseDuration(printDuration(ms))).toBe(ms);
      }),
    );
  });

  it('in any unit means the same after printing', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000 }), fc.constantFrom('ms', 's', 'm', 'h'), (count, unit) => {
        const ms = parseDuration(`${count}${unit}`) ?? Number.NaN;
        expect(parseDuration(printDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe('a size', () => {
  it.each([
    ['32MiB', 33_554_432],
    ['512KiB', 524_288],
    ['1GiB', 1_073_741_824],
    ['10MB', 10_000_000],
    ['4kB', 4_000],
    ['4096', 4_096],
    ['7B', 7],
    ['1.5MiB', 1_572_864],
    ['0.1GB', 100_000_000],
  ])('%s is read in bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['', '1.5', '1.0001kB', '1.MB', '-1', '1 MiB', '32M', '1mib', '1TiB', '0x10', '1e3'])(
    '%j is refused',
    (text) => {
      expect(parseSize(text)).toBeNull();
    },
  );

  it('of any number of bytes is parsed as it was printed', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.constantFrom(1, 1000, 1024, 1_048_576), (count, unit) => {
        const bytes = (count % 1_000_000) * unit;
        expect(parseSize(String(printSize(bytes)))).toBe(bytes);
      }),
    );
  });
});

describe('a share', () => {
  it.each([
    ['0%', 0],
    ['0.25%', 0.0025],
    ['5%', 0.05],
    ['12.5%', 0.125],
    ['99.99%', 0.9999],
    ['100%', 1],
  ])('%s is read', (text, share) => {
    expect(parsePercent(text)).toBeCloseTo(share, 12);
  });

  it.each(['', '5', '%', '101%', '100.5%', '1.234%', '-1%', '.5%', '5 %', '5%x'])('%j is refused', (text) => {
    expect(parsePercent(text)).toBeNull();
  });
});
