import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeRecord,
  type Fate,
  type GeneratedInstance,
  generateInstance,
  toLine,
} from '#testkit/records/generated-records.ts';
import { FULL_RECORD } from '#testkit/records/records.ts';
import { runs } from '#testkit/runs.ts';
import { toReportText } from '../../../src/cli/tables/verify-text.ts';
import { type ReportedInstance, toReport } from '../../../src/records/verify/report.ts';
import { Verification } from '../../../src/records/verify/verify.ts';
import { ledgerOf, recordOf } from './made-ledger.ts';

/** Verifies lines of spans. */
function verifySpans(spans: readonly string[], { isPart = false } = {}) {
  const verification = new Verification();
  for (let at = 0; at < spans.length; at += 50) {
    verification.addLine(Buffer.from(toLine(spans.slice(at, at + 50)).trimEnd()));
  }
  return toReport(verification, { isPart, differences: null });
}

/** The numbers of ranges such as `5` and `7-9`. */
function numbersOf(list: { readonly ranges: readonly string[] } | undefined): readonly number[] {
  return (list?.ranges ?? []).flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

const only = ({ instances }: ReturnType<typeof verifySpans>): ReportedInstance => {
  expect(instances).toHaveLength(1);
  const [first] = instances;
  if (first === undefined) throw new Error('no instance');
  return first;
};

/** A span with one of its values changed. The digest of no field may miss it. */
const change = (json: string): string => json.replace(/"doubleValue":(\d)/, '"doubleValue":1$1');

const everything = ({ records, ledgers }: GeneratedInstance) => [
  ...records.map(({ json }) => json),
  ...ledgers,
];

const upTo = (count: number, fate: Fate = 'queued'): Fate[] => Array.from({ length: count }, () => fate);

describe('all records and ledger spans', () => {
  test('are proven, in any order', () => {
    const generated = generateInstance('a', upTo(2500));
    expect(generated.ledgers).toHaveLength(3);
    const report = verifySpans(everything(generated).toReversed());
    expect(report.proven).toBe(true);
    expect(only(report)).toMatchObject({
      state: 'complete',
      records: 2500,
      prompt_tokens: (2500 * 2501) / 2,
      committed_to: 2500,
      ended: true,
    });
  });

  test('are proven when a ledger span was sent twice', () => {
    const generated = generateInstance('a', upTo(3));
    expect(verifySpans([...everything(generated), ...generated.ledgers]).proven).toBe(true);
  });

  test('of several instances are told apart', () => {
    const a = generateInstance('a', upTo(5));
    const b = generateInstance('b', upTo(7));
    const [record] = b.records.slice(3, 4);
    const report = verifySpans([...everything(a), ...everything(b)].filter((json) => json !== record?.json));
    expect(report.instances.map(({ instance, state }) => [instance, state])).toEqual([
      ['a', 'complete'],
      ['b', 'incomplete'],
    ]);
    expect(report.instances[1]?.missing).toEqual({ count: 1, ranges: ['4'] });
  });
});

describe('whatever happens to records on the way, is named exactly:', () => {
  test('deletions, repeats and changes of any records, some of which the gateway had dropped', () => {
    const fate = fc.constantFrom<Fate>('queued', 'queued', 'queued', 'dropped', 'unencodable');
    const accident = fc.constantFrom(
      'none',
      'none',
      'none',
      'delete',
      'double',
      'change',
      'double and change',
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fate, accident), { minLength: 1, maxLength: 300 }),
        fc.integer({ min: 0, max: 1000 }),
        (plan, seed) => {
          const generated = generateInstance(
            'a',
            plan.map(([each]) => each),
          );
          const named = (...wanted: readonly string[]) =>
            plan.flatMap(([each, what], index) =>
              each === 'queued' && wanted.includes(what) ? [index + 1] : [],
            );
          const spans = generated.records.flatMap(({ seq, json }) => {
            switch (plan[seq - 1]?.[1]) {
              case 'delete':
                return [];
              case 'double':
                return [json, json];
              case 'change':
                return [change(json)];
              case 'double and change':
                return seed % 2 === 0 ? [json, change(json)] : [change(json), json];
              default:
                return [json];
            }
          });
          const place = seed % (spans.length + 1);
          const shuffled = [
            ...spans.slice(place).toReversed(),
            ...generated.ledgers,
            ...spans.slice(0, place),
          ];
          const found = only(verifySpans(shuffled));
          expect(numbersOf(found.missing)).toEqual(named('delete'));
          expect(numbersOf(found.doubled)).toEqual(named('double', 'double and change'));
          expect(numbersOf(found.changed)).toEqual(named('change', 'double and change'));
          for (const why of ['dropped', 'unencodable'] as const) {
            const declared = plan.flatMap(([each], index) => (each === why ? [index + 1] : []));
            expect(numbersOf(found[`declared_${why}`])).toEqual(declared);
          }
          expect(found.ledger_changed ?? found.ledger_missing ?? found.ledger_chain_broken).toBeUndefined();
          expect(found.state).toBe(
            plan.every(([each, what]) => each === 'queued' && what === 'none') ? 'complete' : 'incomplete',
          );
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test('a change of any covered attribute, of its type, or a further one', () => {
    const { records, ledgers } = generateInstance('a', upTo(1));
    const [{ json } = { json: '' }] = records;
    const spans = JSON.parse(json) as { attributes: { key: string; value: Record<string, unknown> }[] };
    const changed = spans.attributes
      .filter(({ key }) => key.startsWith('gateway.') && !/\.(instance|seq)$/.test(key))
      .map(({ key }) => {
        const copy = structuredClone(spans);
        const attribute = copy.attributes.find((each) => each.key === key);
        if (attribute !== undefined) attribute.value = { stringValue: 'another' };
        return copy;
      });
    expect(changed.length).toBeGreaterThan(30);
    const more = structuredClone(spans);
    more.attributes.push({ key: 'gateway.more', value: { kvlistValue: { values: [] } } });
    for (const copy of [...changed, more]) {
      expect(only(verifySpans([JSON.stringify(copy), ...ledgers])).changed).toEqual({
        count: 1,
        ranges: ['1'],
      });
    }
  });

  test('a value that other readers of JSON read otherwise', () => {
    const { records, ledgers } = generateInstance('a', upTo(1));
    const [{ json } = { json: '' }] = records;
    const changes = [
      ['"intValue":"256"', '"intValue":" 256"'],
      ['"intValue":"256"', '"intValue":"0x100"'],
      ['"intValue":"256"', '"intValue":"2.56e2"'],
      ['"intValue":"256"', '"intValue":"256","arrayValue":{}'],
      ['"intValue":"256"', '"intValue":"256","bytesValue":"AA=="'],
      ['"stringValue":"acme"', '"stringValue":"acme","intValue":"7"'],
      ['"stringValue":"acme"', '"stringValue":"acme\\ud800"'],
      ['"stringValue":"acme"', '"arrayValue":{"values":"acme"}'],
    ] as const;
    for (const [from, to] of changes) {
      const changed = json.replace(from, to);
      expect(changed).not.toBe(json);
      expect(only(verifySpans([changed, ...ledgers])).changed).toEqual({ count: 1, ranges: ['1'] });
      // No gateway has sent it, whatever a ledger says.
      expect(only(verifySpans([changed])).changed).toEqual({ count: 1, ranges: ['1'] });
    }
  });

  test('half of a character where there was what UTF-8 writes for it', () => {
    const { records, ledgers } = generateInstance('a', upTo(1), { tenant: 'a\ufffd' });
    const [{ json } = { json: '' }] = records;
    expect(verifySpans([json, ...ledgers]).proven).toBe(true);
    const changed = json.replace('"a\ufffd"', '"a\\ud800"');
    expect(only(verifySpans([changed, ...ledgers])).changed).toEqual({ count: 1, ranges: ['1'] });
  });

  test('a further record without an instance or a number', () => {
    const generated = generateInstance('a', upTo(3));
    const [{ json } = { json: '' }] = generated.records;
    const [ledger = ''] = generated.ledgers;
    const further = [
      json.replace('"gateway.instance"', '"gateway.x"'),
      json.replace('"gateway.instance","value":{"stringValue":"a', `$&${'a'.repeat(256)}`),
      json.replace('"gateway.seq","value":{"intValue":"', '$&0'),
      json.replace('"gateway.seq"', '"gateway.x"'),
      ledger.replace('"gateway.instance"', '"gateway.x"'),
      ledger.replace('"gateway.ledger.number","value"', '"gateway.ledger.number","val"'),
    ];
    for (const span of further) {
      const report = verifySpans([...everything(generated), span]);
      expect(report).toMatchObject({ proven: false, unidentified: 1, instances: [{ state: 'complete' }] });
      expect(toReportText(report)).toContain('records without an instance or a number: 1\nNot proven.');
    }
    const other = '{"attributes":[{"key":"gateway.replica","value":{"stringValue":"vllm-a"}}]}';
    expect(verifySpans([...everything(generated), other]).proven).toBe(true);
  });

  test('attributes of others, another order and ints as numbers are no change', () => {
    const { records, ledgers } = generateInstance('a', upTo(1));
    const span = JSON.parse(records[0]?.json ?? '') as {
      attributes: { key: string; value: { intValue?: string | number } }[];
    };
    span.attributes.reverse();
    for (const { value } of span.attributes) {
      if (value.intValue !== undefined) value.intValue = Number(value.intValue);
    }
    span.attributes.push({ key: 'k8s.pod.name', value: { intValue: 1 } });
    expect(verifySpans([JSON.stringify(span), ...ledgers]).proven).toBe(true);
  });
});

test('attributes without a key are passed over', () => {
  const [{ json } = { json: '' }] = generateInstance('a', upTo(1)).records;
  const found = json.replace('"attributes":[', '"attributes":[null,{"value":{"intValue":1}},');
  expect(found).not.toBe(json);
  expect(verifySpans([found, ...generateInstance('a', upTo(1)).ledgers]).proven).toBe(true);
});

test('truth values are proven', () => {
  for (const stream of [true, false]) {
    const generated = generateInstance('a', upTo(1), { stream });
    expect(verifySpans(everything(generated)).proven).toBe(true);
  }
});

describe('the ledger itself:', () => {
  const generated = generateInstance('a', upTo(3000));
  const [first = '', second = '', third = ''] = generated.ledgers;
  const records = generated.records.map(({ json }) => json);

  test('without its last span, what comes after the others is not committed', () => {
    const report = verifySpans([...records, first, second]);
    expect(report.proven).toBe(false);
    expect(only(report)).toMatchObject({
      state: 'open',
      committed_to: 2048,
      ended: false,
      not_committed: { count: 952, ranges: ['2049-3000'] },
    });
  });

  test('a missing span leaves its records unproven, and says which', () => {
    const found = only(verifySpans([...records.toSpliced(1999, 1), first, third]));
    expect(found).toMatchObject({
      state: 'incomplete',
      ledger_missing: ['2'],
      missing: { count: 1, ranges: ['2000'] },
      unproven: { count: 1023, ranges: ['1025-1999', '2001-2048'] },
    });
  });

  test('a changed span is named, and proves nothing', () => {
    const forged = second.replace('"gateway.ledger.prompt_tokens","value":{"intValue":"', '$&9');
    expect(forged).not.toBe(second);
    const found = only(verifySpans([...records, first, forged, third]));
    expect(found).toMatchObject({ ledger_changed: [2], unproven: { count: 1024, ranges: ['1025-2048'] } });
  });

  test('a span of another history does not follow', () => {
    const other = generateInstance('a', [...upTo(1), 'dropped', ...upTo(2998)]);
    const found = only(verifySpans([...records, first, other.ledgers[1] ?? '', third]));
    expect(found.ledger_chain_broken).toEqual([2, 3]);
  });

  test('the files of a part are proven as a part, and only then', () => {
    const part = [...records.slice(1024, 2100), second];
    expect(verifySpans(part).proven).toBe(false);
    const report = verifySpans(part, { isPart: true });
    expect(report.proven).toBe(true);
    expect(only(report)).toMatchObject({
      state: 'open',
      not_committed: { count: 52, ranges: ['2049-2100'] },
    });
    expect(verifySpans(part.toSpliced(5, 1), { isPart: true }).proven).toBe(false);
  });

  test('without any span, gaps and repeats are found, and nothing is proven', () => {
    const some = records.slice(0, 10);
    expect(verifySpans(some)).toMatchObject({ proven: false, instances: [{ state: 'uncommitted' }] });
    expect(verifySpans(some, { isPart: true }).proven).toBe(false);
    const found = only(verifySpans([...some.toSpliced(4, 1), ...some.slice(7, 8)], { isPart: true }));
    expect(found).toMatchObject({ missing: { ranges: ['5'] }, doubled: { ranges: ['8'] } });
  });

  test('a record that it declares dropped, or beyond its end, is unexpected', () => {
    const dropped = generateInstance('a', ['queued', 'dropped', 'queued']);
    const [, two = '', , four = ''] = records;
    const found = only(verifySpans([...everything(dropped), two, four]));
    expect(found.unexpected).toEqual({ count: 2, ranges: ['2', '4'] });
  });
});

describe('lines of a spool', () => {
  const toSpoolLine = (bytes: Uint8Array) =>
    Buffer.from(`${crc32(bytes).toString(16).padStart(8, '0')} ${Buffer.from(bytes).toString('base64')}`);

  test('are records', () => {
    const verification = new Verification();
    for (const seq of [1, 2])
      verification.addLine(toSpoolLine(encodeRecord({ ...FULL_RECORD, instance: 'a', seq })));
    expect([verification.brokenLines, verification.checks.get('a')?.records]).toEqual([0, 2]);
  });

  test('are broken if their bytes are no span', () => {
    const verification = new Verification();
    verification.addLine(toSpoolLine(Uint8Array.of(0x12, 0x7f)));
    expect([verification.brokenLines, verification.checks.size]).toEqual([1, 0]);
  });
});

describe('records that a ledger span says were rejected', () => {
  const [ledger = ''] = ledgerOf('a', [{ firstSeq: 1, lastSeq: 1, rejected: ['1', 'b:1-2'], isFinal: true }]);
  const rejectedIn = (spans: readonly string[]) =>
    verifySpans(spans).instances.map(({ instance, declared_rejected }) => [instance, declared_rejected]);

  test('are those of its instance, and of others', () => {
    expect(rejectedIn([ledger, recordOf('b', 3)])).toEqual([
      ['a', { count: 1, ranges: ['1'] }],
      ['b', { count: 2, ranges: ['1-2'] }],
    ]);
  });

  test('are not believed if it was changed', () => {
    const forged = ledger.replace('b:1-2', 'b:1-9');
    expect(forged).not.toBe(ledger);
    expect(rejectedIn([forged, recordOf('b', 3)])).toEqual([
      ['a', undefined],
      ['b', undefined],
    ]);
  });
});

describe('hostile lines', () => {
  test('can name 100,000 instances, and no more', () => {
    const rejected = Array.from({ length: 99_999 }, (_, index) => `b${index}:1`);
    const verification = new Verification();
    verification.addLine(Buffer.from(toLine(ledgerOf('a', [{ firstSeq: 1, lastSeq: 0, rejected }]))));
    expect(verification.checks.size).toBe(100_000);
    verification.addLine(Buffer.from(toLine([recordOf('a', 1)])));
    expect(() => verification.addLine(Buffer.from(toLine([recordOf('c', 1)])))).toThrow(
      expect.objectContaining({ name: 'TooManyInstancesError' }),
    );
  });

  test('cost no more memory than is said, and no time', () => {
    const spans = [1, 5e14, 9e15, Number.MAX_SAFE_INTEGER].map((seq) =>
      JSON.stringify({
        attributes: [
          { key: 'gateway.instance', value: { stringValue: 'x' } },
          { key: 'gateway.seq', value: { intValue: seq } },
        ],
      }),
    );
    const found = only(verifySpans(spans));
    expect(found.records).toBe(4);
    expect(found.missing?.ranges).toHaveLength(3);
  });

  test('are counted when they are no records', () => {
    const verification = new Verification();
    const lines = [
      '',
      '{',
      'null',
      '[]',
      '{"resourceSpans":3}',
      '0badc0de AAAA',
      '{"resourceSpans":[{"scopeSpans":[null]}]}',
    ];
    for (const line of lines) verification.addLine(Buffer.from(line));
    verification.addLine(null);
    expect(verification.brokenLines).toBe(7);
    expect(verification.checks.size).toBe(0);
  });
});
