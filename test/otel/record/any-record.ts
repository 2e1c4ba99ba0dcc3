import fc from 'fast-check';
import { RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { anyCharacter } from '#testkit/any-character.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';

/**
 * Any record, with each field of the registry, the optional ones here and there, and values that the encoder takes whole.
 * `isFraction`: no double is integral.
 */
export function anyRecord({ isFraction = false } = {}): fc.Arbitrary<RequestRecord> {
  const text = (maxLength = 256) => fc.string({ unit: anyCharacter, maxLength: maxLength / 2 });
  const double = fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: isFraction, min: 0 });
  const values = {
    string: text(),
    int: fc.maxSafeInteger(),
    double,
    bool: fc.boolean(),
    strings: fc.array(text()),
    doubles: fc.dictionary(text(64), double, { minKeys: 1, maxKeys: 64 }),
  };
  return fc.record<Partial<RequestRecord>>(
    {
      ...Object.fromEntries(Object.entries(RECORD_FIELDS).map(([field, { type }]) => [field, values[type]])),
      truncated: fc.constant(true as const),
    },
    { requiredKeys: Object.keys(LEAST_RECORD) as (keyof RequestRecord)[] },
  ) as fc.Arbitrary<RequestRecord>;
}
