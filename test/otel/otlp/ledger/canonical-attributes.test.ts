import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AttributesDigester } from '../../../../otel/otlp/ledger/canonical-attributes.ts';

const varint = (value: number): readonly number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)];
const field = (tag: number, bytes: readonly number[]) => [tag, ...varint(bytes.length), ...bytes];
/** An attribute of a span: its key, and a string. */
const attribute = (key: string, value: string) =>
  field(0x4a, [...field(0x0a, [...Buffer.from(key)]), ...field(0x12, field(0x0a, [...Buffer.from(value)]))]);
/** A span with these attributes, as a field of ScopeSpans. */
const spanOf = (...attributes: readonly (readonly number[])[]) =>
  Uint8Array.from(field(0x12, attributes.flat()));
const digestOf = (...attributes: readonly (readonly number[])[]) =>
  new AttributesDigester().digestSpan(spanOf(...attributes))?.toString('hex');
/** The SHA-256 of attributes that are in order. */
const hashOf = (...attributes: readonly (readonly number[])[]) =>
  hash('sha256', Uint8Array.from(attributes.flat()));

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
    for (const key of ['x', 'gateway', 'gatewa!.a', 'xateway.a', 'other.attribute']) {
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

  test('is the SHA-256 of the attributes in the order of the bytes of their keys', () => {
    // 1 is below every byte that may follow a key.
    const keys = ['gateway.', 'gateway.a', 'gateway.a\u0001', 'gateway.ab', 'gateway.b'];
    const ordered = keys.map((key) => attribute(key, '1'));
    for (let from = 0; from < ordered.length; from++) {
      const turned = [...ordered.slice(from), ...ordered.slice(0, from)];
      expect(digestOf(...turned)).toBe(hashOf(...ordered));
      expect(digestOf(...turned.toReversed())).toBe(hashOf(...ordered));
    }
  });

  test('is of attributes of any length, and of no earlier ones', () => {
    const digester = new AttributesDigester();
    for (const length of [0, 1, 47, 48, 49, 50, 1000, 16_000, 17_000, 100_000, 3]) {
      const long = attribute('gateway.long', 'x'.repeat(length));
      for (const attributes of [[long], [a1, long], [long, attribute('gateway.z', '2')]]) {
        expect(digester.digestSpan(spanOf(...attributes))?.toString('hex')).toBe(hashOf(...attributes));
      }
    }
  });

  test('takes nothing for a key but the field of a key, and nothing behind it', () => {
    const hidden = attribute('gateway.z', '1');
    for (const other of [
      field(0x4a, field(0x12, [...Buffer.from('gateway.z')])),
      // A fixed64 of another field, which reads `y.` with its tag.
      field(0x4a, [...field(0x0a, [...Buffer.from('gatewa')]), ...[0x79, 0x2e, 0, 0, 0, 0, 0, 0, 0]]),
      field(0x4a, []),
      field(0x0a, hidden),
    ]) {
      expect(digestOf(other, a1)).toBe(hashOf(a1));
      expect(digestOf(a1, other)).toBe(hashOf(a1));
    }
  });
});

describe('the digest of a span in JSON', () => {
  const digestOfJson = (...attributes: readonly (readonly [key: string, value: unknown])[]) =>
    new AttributesDigester()
      .digestJsonSpan({ attributes: attributes.map(([key, value]) => ({ key, value })) })
      ?.toString('hex') ?? null;
  /** An attribute with an AnyValue. */
  const withValue = (key: string, value: readonly number[]) =>
    field(0x4a, [...field(0x0a, [...Buffer.from(key)]), ...field(0x12, value)]);
  const DOUBLE = [0x21, ...Buffer.from(new Float64Array([1.5]).buffer)];

  test('is that of its protobuf, for every kind of value', () => {
    const kinds: readonly (readonly [unknown, readonly number[]])[] = [
      [{ stringValue: 'ä' }, field(0x0a, [0xc3, 0xa4])],
      [{ boolValue: true }, [0x10, 1]],
      [{ boolValue: false }, [0x10, 0]],
      [{ intValue: '300' }, [0x18, ...varint(300)]],
      [{ intValue: 7 }, [0x18, 7]],
      [{ doubleValue: 1.5 }, DOUBLE],
      [{ arrayValue: {} }, field(0x2a, [])],
      [{ arrayValue: { values: [{ boolValue: true }] } }, field(0x2a, field(0x0a, [0x10, 1]))],
    ];
    for (const [value, encoded] of kinds) {
      expect(digestOfJson(['gateway.a', value]), JSON.stringify(value)).toBe(
        hashOf(withValue('gateway.a', encoded)),
      );
    }
  });

  test.each([
    ['null', null],
    ['a list without items', { arrayValue: { values: 5 } }],
    [
      'an item that the gateway never sends',
      { arrayValue: { values: [{ kvlistValue: {} }, { boolValue: true }] } },
    ],
    ['two values', { boolValue: true, intValue: 1 }],
  ])('does not exist with %s', (_, value) => {
    expect(digestOfJson(['gateway.a', value])).toBeNull();
  });

  test('has lists in lists to a depth of eight', () => {
    const nested = (depth: number): unknown =>
      depth === 0 ? { boolValue: true } : { arrayValue: { values: [nested(depth - 1)] } };
    expect(digestOfJson(['gateway.a', nested(8)])).not.toBeNull();
    expect(digestOfJson(['gateway.a', nested(9)])).toBeNull();
  });

  test('does not depend on attributes of others, whatever they are', () => {
    const value = { stringValue: '1' };
    expect(digestOfJson(['k8s.pod', { kvlistValue: {} }], ['gateway.a', value])).toBe(
      hashOf(attribute('gateway.a', '1')),
    );
  });

  test('is of lists that are longer than the memory is at first', () => {
    const values = Array.from({ length: 3_000 }, () => ({ doubleValue: 1.5 }));
    const list = withValue(
      'gateway.b',
      field(
        0x2a,
        values.flatMap(() => field(0x0a, DOUBLE)),
      ),
    );
    // Wherever in an item the memory ends.
    for (let length = 0; length < 12; length++) {
      const before = 'x'.repeat(length);
      expect(
        digestOfJson(['gateway.a', { stringValue: before }], ['gateway.b', { arrayValue: { values } }]),
      ).toBe(hashOf(attribute('gateway.a', before), list));
    }
  });
});
