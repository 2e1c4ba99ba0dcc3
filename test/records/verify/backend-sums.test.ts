import { describe, expect, test } from 'vitest';
import { compareSums, parseBackendSums } from '../../../src/records/verify/backend-sums.ts';
import type { ExportedLedger } from '../../../src/records/verify/exported-span.ts';

/** A ledger span over ten records with the numbers before `lastSeq`. */
const ledgerTo = (lastSeq: number, count = 10): ExportedLedger => ({
  kind: 'ledger',
  instance: 'a',
  number: lastSeq / 10,
  firstSeq: lastSeq - 9,
  lastSeq,
  count,
  tokens: { prompt: 100, completion: 20, cached: 3 },
  isFinal: false,
  isIntact: true,
  chain: '',
  previous: '',
  digests: Buffer.alloc(0),
  dropped: [],
  lost: [],
  unencodable: [],
  rejected: [],
});
const ledgers = new Map([['a', [10, 20, 30].map((lastSeq) => ledgerTo(lastSeq))]]);
const rowOf = (members: object) => ({
  instance: 'a',
  count: 30,
  tokens: {},
  firstSeq: null,
  lastSeq: null,
  ...members,
});
const whatOf = (members: object) => compareSums([rowOf(members)], ledgers).map(({ what }) => what);

describe('sums of a backend', () => {
  test.each([
    ['all ledger spans', { count: 30, tokens: { prompt: 300, completion: 60, cached: 9 } }],
    ['those from a number on', { count: 20, firstSeq: 11 }],
    ['those up to a number', { count: 20, lastSeq: 20 }],
    ['one of them', { count: 10, firstSeq: 11, lastSeq: 20, tokens: { completion: 20 } }],
  ])('agree with %s', (_, members) => {
    expect(whatOf(members)).toEqual([]);
  });

  test.each([
    ['count', { count: 29 }],
    ['prompt_tokens', { tokens: { prompt: 299 } }],
    ['completion_tokens', { tokens: { completion: 59 } }],
    ['cached_tokens', { tokens: { cached: 0 } }],
    ['ledger', { firstSeq: 12 }],
    ['ledger', { firstSeq: 2, count: 20 }],
    ['ledger', { lastSeq: 19, count: 10 }],
    ['ledger', { lastSeq: 31 }],
    ['ledger', { firstSeq: 31, count: 0 }],
  ])('differ in %s: %j', (what, members) => {
    expect(whatOf(members)).toEqual([what]);
  });

  test('differ for an instance that has no ledger', () => {
    expect(whatOf({ instance: 'unknown', count: 0 })).toEqual(['ledger', 'row']);
  });

  test('differ where a ledger span is missing between the first and the last', () => {
    const gap = new Map([['a', [ledgerTo(10), ledgerTo(30)]]]);
    expect(compareSums([rowOf({ count: 20 })], gap)).toMatchObject([{ what: 'ledger', found: 20 }]);
  });

  test('lack a row for an instance that has records, and only for such a one', () => {
    const both = new Map([
      ['a', [ledgerTo(10, 1)]],
      ['b', [ledgerTo(10, 0)]],
    ]);
    expect(compareSums([], both)).toEqual([
      { instance: 'a', first_seq: null, last_seq: null, what: 'row', expected: 1, found: null },
    ]);
    expect(compareSums([rowOf({ count: 1 })], both)).toEqual([]);
  });
});

describe('the file of sums', () => {
  const full = {
    instance: 'a',
    count: 3,
    prompt_tokens: '12',
    completion_tokens: 0,
    cached_tokens: '4',
    first_seq: '2',
    last_seq: 9,
  };
  const parsed = [
    { instance: 'a', count: 3, tokens: { prompt: 12, completion: 0, cached: 4 }, firstSeq: 2, lastSeq: 9 },
  ];

  test('is a JSON array, or has an object in each line', () => {
    expect(parseBackendSums(` [${JSON.stringify(full)}]`)).toEqual(parsed);
    expect(parseBackendSums(`${JSON.stringify(full)}\n \n${JSON.stringify(full)}\n`)).toEqual([
      ...parsed,
      ...parsed,
    ]);
    expect(parseBackendSums('{"instance":"a","count":0,"prompt_tokens":null}')).toEqual([
      { instance: 'a', count: 0, tokens: {}, firstSeq: null, lastSeq: null },
    ]);
    expect(parseBackendSums('[')).toMatch(/^it is neither/);
  });

  test.each([
    ['no object', 5],
    ['null', null],
    ['an array', ['a', 3]],
    ['no instance', { ...full, instance: 7 }],
    ['no count', { ...full, count: null }],
    ['a text that is no number', { ...full, count: '1e3' }],
    ['a text with too many digits', { ...full, count: '12345678901234567' }],
    ['a negative number', { ...full, prompt_tokens: -1 }],
    ['a fraction', { ...full, completion_tokens: 1.5 }],
    ['a number beyond those that are exact', { ...full, cached_tokens: 2 ** 53 }],
    ['a list', { ...full, first_seq: ['1'] }],
    ['a truth value', { ...full, last_seq: true }],
  ])('says in which row it has %s', (_, row) => {
    expect(parseBackendSums(JSON.stringify([full, row]))).toMatch(/^row 2 /);
  });
});
