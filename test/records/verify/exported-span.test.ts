import { describe, expect, test } from 'vitest';
import { generateInstance, toLine } from '#testkit/records/generated-records.ts';
import {
  type ExportedLedger,
  type ExportedSpan,
  SpanReader,
} from '../../../src/records/verify/exported-span.ts';

type Attribute = readonly [key: string, value: unknown];

const text = (stringValue: unknown) => ({ stringValue });
const int = (intValue: unknown) => ({ intValue });
const UNIDENTIFIED = { kind: 'unidentified' };

const toJson = (attributes: readonly Attribute[]): string =>
  JSON.stringify({ attributes: attributes.map(([key, value]) => ({ key, value })) });

/** What is read of a span with these attributes. */
const read = (...attributes: readonly Attribute[]): readonly ExportedSpan[] =>
  new SpanReader().readLine(Buffer.from(toLine([toJson(attributes)]))) ?? [];

const record = (...more: readonly Attribute[]) =>
  read(['gateway.instance', text('a')], ['gateway.seq', int('7')], ...more);

function ledger(...more: readonly Attribute[]): ExportedLedger {
  const [span] = read(['gateway.instance', text('a')], ['gateway.ledger.number', int('1')], ...more);
  if (span?.kind !== 'ledger') throw new Error('it is no ledger span');
  return span;
}

describe('a record', () => {
  test('has its number, and the tokens that it names', () => {
    const tokens = { prompt: 12, completion: 5, cached: 3 };
    expect(
      record(
        ['gen_ai.usage.input_tokens', int('12')],
        ['gen_ai.usage.output_tokens', int(5)],
        ['gen_ai.usage.cache_read.input_tokens', int('3')],
        ['gateway.prompt_tokens', int('12')],
        ['gateway.completion_tokens', int(5)],
        ['gateway.cached_tokens', int('3')],
      ),
    ).toMatchObject([{ kind: 'record', instance: 'a', seq: 7, tokens }]);
  });

  test('without tokens has none', () => {
    expect(record()).toMatchObject([{ tokens: { prompt: 0, completion: 0, cached: 0 } }]);
  });

  test('with a value that the gateway never sends has no digest', () => {
    expect(record(['gateway.more', { kvlistValue: {} }])).toMatchObject([{ digest: null }]);
  });

  test('names an instance of at most 256 characters', () => {
    const of = (length: number) =>
      read(['gateway.instance', text('a'.repeat(length))], ['gateway.seq', int(1)]);
    expect(of(256)).toMatchObject([{ kind: 'record' }]);
    expect(of(257)).toEqual([UNIDENTIFIED]);
  });

  test.each([
    ['the number 0', int('0')],
    ['a negative number', int(-1)],
    ['a number that is none', text('7')],
  ])('with %s does not say which one it is', (_, seq) => {
    expect(read(['gateway.instance', text('a')], ['gateway.seq', seq])).toEqual([UNIDENTIFIED]);
  });

  test('with an instance that is no text does not say which one it is', () => {
    expect(read(['gateway.instance', text(5)], ['gateway.seq', int(1)])).toEqual([UNIDENTIFIED]);
  });
});

describe('spans of a record', () => {
  test('that are those of others are passed over', () => {
    expect(read(['gateway.replica', text('a')])).toEqual([]);
    expect(read(['gateway.instance', text('a')])).toEqual([]);
  });

  test('that are no JSON are none', () => {
    expect(new SpanReader().readLine(Buffer.from('{"resourceSpans":['))).toBeNull();
  });
});

describe('a ledger span', () => {
  test('says what it covers', () => {
    const [json = ''] = generateInstance('a', ['queued', 'dropped', 'unencodable'], {
      cached_tokens: 4,
    }).ledgers;
    const span = new SpanReader().readSpan(JSON.parse(json));
    expect(span).toMatchObject({
      kind: 'ledger',
      instance: 'a',
      number: 1,
      firstSeq: 1,
      lastSeq: 3,
      count: 1,
      tokens: { prompt: 1, completion: 1, cached: 4 },
      dropped: [{ first: 2, last: 2 }],
      unencodable: [{ first: 3, last: 3 }],
      lost: [],
      rejected: [],
      isFinal: true,
      isIntact: true,
      previous: '0'.repeat(64),
    });
    expect(span).toHaveProperty('digests.length', 16);
  });

  test('that lacks everything is one that was changed', () => {
    expect(ledger()).toEqual({
      kind: 'ledger',
      instance: 'a',
      number: 1,
      firstSeq: 0,
      lastSeq: 0,
      count: 0,
      tokens: { prompt: 0, completion: 0, cached: 0 },
      dropped: [],
      lost: [],
      unencodable: [],
      rejected: [],
      digests: Buffer.alloc(0),
      previous: '',
      chain: '',
      isFinal: false,
      isIntact: false,
    });
  });

  test('with another chain, or a value that the gateway never sends, is one that was changed', () => {
    const [json = ''] = generateInstance('a', ['queued']).ledgers;
    const isIntact = (changed: string) => {
      expect(changed).not.toBe(json);
      const span = new SpanReader().readSpan(JSON.parse(changed));
      return [span?.kind === 'ledger' && span.isIntact];
    };
    expect(isIntact(json.replace(/("gateway.ledger.chain","value":\{"stringValue":")/, '$10'))).toEqual([
      false,
    ]);
    expect(
      isIntact(json.replace(/("gateway.ledger.first_seq","value":)\{[^}]*\}/, '$1{"kvlistValue":{}}')),
    ).toEqual([false]);
  });

  test('has ranges of numbers, and leaves out what is none', () => {
    const values = [
      ...[text('5'), text('7-9'), text('x'), text('9-7'), text(''), text('1-'), text(5), null, int(6)],
      ...[text('1234567890123456'), text('8-8')],
    ];
    expect(ledger(['gateway.ledger.lost', { arrayValue: { values } }]).lost).toEqual([
      { instance: 'a', first: 5, last: 5 },
      { instance: 'a', first: 7, last: 9 },
      { instance: 'a', first: 8, last: 8 },
    ]);
  });

  test('has ranges of other instances, whose names may have colons', () => {
    const values = [text('b:5'), text('c:1:7-9')];
    expect(ledger(['gateway.ledger.rejected', { arrayValue: { values } }]).rejected).toEqual([
      { instance: 'b', first: 5, last: 5 },
      { instance: 'c:1', first: 7, last: 9 },
    ]);
  });
});
