import { describe, expect, test } from 'vitest';
import { generateInstance, toLine } from '#testkit/records/generated-records.ts';
import { toReport } from '../../../src/records/verify/report.ts';
import { Verification } from '../../../src/records/verify/verify.ts';
import { ledgerOf, type MadePage, recordOf } from './made-ledger.ts';

interface Given {
  readonly isPart?: boolean;
  /** Sums were given, and agree. */
  readonly hasSums?: boolean;
  readonly brokenLine?: boolean;
}

function report(
  spans: readonly string[],
  { isPart = false, hasSums = false, brokenLine = false }: Given = {},
) {
  const verification = new Verification();
  verification.addLine(Buffer.from(toLine(spans).trimEnd()));
  if (brokenLine) verification.addLine(null);
  return toReport(verification, { isPart, differences: hasSums ? [] : null });
}

const recordsOf = (instance: string, ...seqs: readonly number[]) =>
  seqs.map((seq) => recordOf(instance, seq));
const page = (firstSeq: number, lastSeq: number, more: Partial<MadePage> = {}): MadePage => ({
  firstSeq,
  lastSeq,
  ...more,
});
const FINAL = { isFinal: true } as const;
const whole = (instance: string) => [...recordsOf(instance, 1), ...ledgerOf(instance, [page(1, 1, FINAL)])];

describe('the report on an instance', () => {
  test('with all that it needs has no member about anything wrong', () => {
    const { proven, instances } = report(whole('a'));
    expect(proven).toBe(true);
    expect(instances).toEqual([
      {
        instance: 'a',
        state: 'complete',
        records: 1,
        ledger_spans: 1,
        committed_to: 1,
        ended: true,
        prompt_tokens: 0,
        completion_tokens: 0,
        cached_tokens: 0,
        chain: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  test('names everything that is wrong', () => {
    const [first = '', , third = '', fourth = '', fifth = ''] = ledgerOf('a', [
      page(1, 4, { lost: '2' }),
      page(5, 6),
      page(7, 8, { rejected: ['8'] }),
      page(9, 9),
      page(10, 10),
    ]);
    const forged = fifth.replace('"gateway.ledger.count","value":{"intValue":"', '$&9');
    expect(forged).not.toBe(fifth);
    const spans = [...recordsOf('a', 1, 4, 5, 5, 7, 9, 11), first, third, fourth, forged];
    const { proven, instances } = report(spans);
    expect(proven).toBe(false);
    expect(instances[0]).toMatchObject({
      state: 'incomplete',
      ledger_missing: ['2'],
      ledger_changed: [5],
      missing: { count: 3, ranges: ['3', '6', '10'] },
      declared_lost: { count: 1, ranges: ['2'] },
      declared_rejected: { count: 1, ranges: ['8'] },
      doubled: { count: 1, ranges: ['5'] },
      unproven: { count: 1, ranges: ['5'] },
      not_committed: { count: 1, ranges: ['11'] },
    });
  });

  test('names what the gateway has declared, by its reason', () => {
    const { ledgers } = generateInstance('a', ['dropped', 'unencodable']);
    expect(report(ledgers).instances[0]).toMatchObject({
      declared_dropped: { count: 1, ranges: ['1'] },
      declared_unencodable: { count: 1, ranges: ['2'] },
    });
  });

  test('names missing records where only ledger spans are there, unless sums are given', () => {
    const ledgers = ledgerOf('a', [page(1, 2, FINAL)]);
    expect(report(ledgers).instances[0]?.missing).toEqual({ count: 2, ranges: ['1-2'] });
    expect(report(ledgers, { hasSums: true }).instances[0]).not.toHaveProperty('missing');
  });

  test('names ledger spans that do not follow the one before, and those missing as ranges', () => {
    const [first = ''] = ledgerOf('a', [page(1, 1)]);
    const [, second = '', , , fifth = ''] = ledgerOf('a', [
      page(1, 1, { promptTokens: 7 }),
      ...[2, 3, 4, 5].map((seq) => page(seq, seq)),
    ]);
    const { instances } = report([...recordsOf('a', 1, 2, 5), first, second, fifth]);
    expect(instances[0]).toMatchObject({ ledger_chain_broken: [2], ledger_missing: ['3-4'] });
  });

  test('says where the sums of the ledger are not those of its records', () => {
    const spans = [...recordsOf('a', 1), ...ledgerOf('a', [page(1, 1, { promptTokens: 7, ...FINAL })])];
    expect(report(spans)).toMatchObject({ proven: false, instances: [{ sums_differ: true }] });
  });

  test('lists 10,000 ranges, and says that there are more', () => {
    const odd = Array.from({ length: 10_001 }, (_, index) => 2 * index + 1);
    const missingIn = (seqs: readonly number[]) => report(recordsOf('a', ...seqs)).instances[0]?.missing;
    expect(missingIn(odd)).toEqual({ count: 10_000, ranges: odd.slice(1).map((seq) => `${seq - 1}`) });
    const withMore = missingIn([...odd, 20_003]);
    expect(withMore).toMatchObject({ count: 10_001, more: true });
    expect(withMore?.ranges).toHaveLength(10_000);
  });
});

describe('a proof', () => {
  test('needs all of several instances', () => {
    expect(report([...whole('a'), ...whole('b')]).proven).toBe(true);
    expect(report([...whole('a'), ...whole('b').slice(1)]).proven).toBe(false);
  });

  test('needs lines that can all be read', () => {
    expect(report(whole('a'), { brokenLine: true })).toMatchObject({ proven: false, broken_lines: 1 });
  });

  test('of a part needs no end, and nothing wrong', () => {
    const [first = ''] = ledgerOf('a', [page(1, 2)]);
    expect(report([...recordsOf('a', 1, 2), first]).proven).toBe(false);
    expect(report([...recordsOf('a', 1, 2), first], { isPart: true }).proven).toBe(true);
    expect(report([...recordsOf('a', 1), first], { isPart: true }).proven).toBe(false);
  });
});

describe('a proof by sums alone', () => {
  const hasSums = true;
  const [first = '', , third = ''] = ledgerOf('a', [page(1, 1), page(2, 2), page(3, 3, FINAL)]);

  test('needs no records, and names none', () => {
    const { proven, instances } = report(ledgerOf('a', [page(1, 3, { lost: '2', ...FINAL })]), { hasSums });
    expect(proven).toBe(true);
    expect(Object.keys(instances[0] ?? {}).filter((name) => /missing|declared/.test(name))).toEqual([]);
  });

  test('is not one if any instance has a record: then none may be missing', () => {
    const [ledger = ''] = ledgerOf('b', [page(1, 1, FINAL)]);
    const { proven, instances } = report([...whole('a'), ledger], { hasSums });
    expect(proven).toBe(false);
    expect(instances[1]?.missing).toEqual({ count: 1, ranges: ['1'] });
  });

  test('needs an unbroken ledger, with its end unless it is a part', () => {
    expect(report([first, third], { hasSums }).proven).toBe(false);
    expect(report([first], { hasSums }).proven).toBe(false);
    expect(report([first], { hasSums, isPart: true }).proven).toBe(true);
    expect(report([first, third], { hasSums, isPart: true }).proven).toBe(false);
  });
});
