import fc from 'fast-check';
import { expect, test } from 'vitest';
import { UtcTimestamps } from '../../../otel/span/request-span.ts';

test('a time is written as Date writes it, whatever was written before', () => {
  const timestamps = new UtcTimestamps();
  const time = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
  fc.assert(
    fc.property(time, fc.integer({ min: 0, max: 1500 }), (date, laterMs) => {
      for (const epochMs of [date.getTime(), date.getTime() + laterMs]) {
        expect(timestamps.toText(epochMs)).toBe(new Date(epochMs).toISOString());
      }
    }),
  );
});
