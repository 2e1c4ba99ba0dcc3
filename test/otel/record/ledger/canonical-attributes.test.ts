import { describe, expect, test } from 'vitest';
import { AttributesDigester } from '../../../../otel/record/ledger/canonical-attributes.ts';

const field = (tag: number, bytes: readonly number[]) => [tag, bytes.length, ...bytes];
/** An attribute of a span: its key, and a string. */
const attribute = (key: string, value: string) =>
  field(0x4a, [...field(0x0a, [...Buffer.from(key)]), ...field(0x12, field(0x0a, [...Buffer.from(value)]))]);
/** A span with these attributes, as a field of ScopeSpans. */
const spanOf = (...attributes: readonly (readonly number[])[]) =>
  Uint8Array.from(field(0x12, attributes.flat()));
const digestOf = (...attributes: readonly (readonly number[])[]) =>
  new AttributesDigester().digestSpan(spanOf(...attributes))?.toString('hex');

describe('the digest of a span', () => {
  const [a1, a2, b] = [attribute('gateway.a', '1'), attribute('gateway.a', '2'), attribute('gateway.b', '1')];

  test('does not depend on the order of the attributes, also of two with one key', () => {
    expect(digestOf(b, a1)).toBe(digestOf(a1, b));
    expect(digestOf(b, a2, a1)).toBe(digestOf(a1, a2, b));
    expect(digestOf(a1, a1, b)).not.toBe(digestOf(a1, b));
    const longer = attribute('gateway.a', '11');
    expect(digestOf(longer, a1)).toBe(digestOf(a1, longer));
  });

  test('is of those attributes alone whose names begin with gateway.', () => {
    for (const key of ['x', 'gateway', 'gatewa!.a', 'other.attribute']) {
      expect(digestOf(a1, attribute(key, '1'))).toBe(digestOf(a1));
    }
    expect(digestOf(a1, attribute('gateway.', '1'))).not.toBe(digestOf(a1));
  });

  test('does not exist for bytes that are no span', () => {
    const digester = new AttributesDigester();
    expect(
      [[], [0x12, 0x7f], [0x0a, 0x00]].map((bytes) => digester.digestSpan(Uint8Array.from(bytes))),
    ).toEqual([null, null, null]);
  });
});
