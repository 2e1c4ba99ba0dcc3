import { describe, expect, test } from 'vitest';
import { NO_PREVIOUS } from '#otel/ledger';
import { DIGEST_BYTES } from '#otel/otlp';
import type { ExportedLedger } from '../../../src/records/verify/exported-span.ts';
import { InstanceCheck } from '../../../src/records/verify/instance-check.ts';
import { createPageAllowance } from '../../../src/records/verify/seq-pages.ts';

const TOKENS = { prompt: 10, completion: 5, cached: 2 };
const digestOf = (seq: number) => Buffer.alloc(DIGEST_BYTES, seq);

/** A ledger span over the numbers from `firstSeq` to `lastSeq`, without those that it declares absent. */
function ledgerOf(
  number: number,
  firstSeq: number,
  lastSeq: number,
  more: Partial<ExportedLedger> = {},
): ExportedLedger {
  const absent = [...(more.dropped ?? []), ...(more.lost ?? []), ...(more.unencodable ?? [])];
  const seqs = Array.from({ length: lastSeq - firstSeq + 1 }, (_, index) => firstSeq + index).filter(
    (seq) => !absent.some(({ first, last }) => first <= seq && seq <= last),
  );
  const count = seqs.length;
  return {
    kind: 'ledger',
    instance: 'a',
    number,
    firstSeq,
    lastSeq,
    count,
    tokens: { prompt: 10 * count, completion: 5 * count, cached: 2 * count },
    dropped: [],
    lost: [],
    unencodable: [],
    rejected: [],
    digests: Buffer.concat(seqs.map(digestOf)),
    previous: number === 1 ? NO_PREVIOUS : `chain ${number - 1}`,
    chain: `chain ${number}`,
    isFinal: false,
    isIntact: true,
    ...more,
  };
}

/** As many digests as this, whatever the numbers are. */
const withDigests = (count: number) => ({ count, digests: Buffer.alloc(count * DIGEST_BYTES) });

/** The verdict on these ledger spans, and on records with these numbers. */
function judge(
  ledgers: readonly ExportedLedger[],
  seqs: readonly number[],
  { isPart = false, rejected = [] as readonly number[] } = {},
) {
  const check = new InstanceCheck('a', createPageAllowance());
  for (const ledger of ledgers) check.addLedger(ledger);
  for (const seq of seqs)
    check.addRecord({ kind: 'record', instance: 'a', seq, digest: digestOf(seq), tokens: TOKENS });
  for (const seq of rejected) check.addRejected({ first: seq, last: seq });
  const verdict = check.verdict({ isPart });
  const { finding } = verdict;
  const numbers = {
    missing: finding.missing.ranges,
    rejected: finding.declared.rejected.ranges,
    doubled: finding.doubled.ranges,
    changed: finding.changed.ranges,
    unexpected: finding.unexpected.ranges,
    notCommitted: finding.notCommitted.ranges,
    unproven: finding.unproven.ranges,
    missingLedgers: finding.missingLedgers,
    changedLedgers: finding.changedLedgers,
    brokenChain: finding.brokenChain,
  };
  const found = Object.fromEntries(Object.entries(numbers).filter(([, list]) => list.length > 0));
  return { ...verdict, found };
}

const FINAL = { isFinal: true } as const;
const range = (first: number, last = first) => ({ first, last });

describe('the verdict', () => {
  test('is that all is complete, with the sums of different records and the end of the chain', () => {
    const verdict = judge([ledgerOf(2, 3, 4, FINAL), ledgerOf(1, 1, 2)], [4, 2, 1, 3]);
    expect(verdict).toMatchObject({
      instance: 'a',
      state: 'complete',
      records: 4,
      ledgerSpans: 2,
      committedTo: 4,
      isFinal: true,
      tokens: { prompt: 40, completion: 20, cached: 8 },
      chain: 'chain 2',
      found: {},
    });
  });

  test('counts a record that is there twice once', () => {
    const verdict = judge([ledgerOf(1, 1, 2, FINAL)], [1, 2, 2]);
    expect(verdict).toMatchObject({ records: 2, tokens: { prompt: 20 }, found: { doubled: [range(2)] } });
  });

  test('is open while the last ledger span says nothing of an end', () => {
    const verdict = judge([ledgerOf(1, 1, 2)], [1, 2, 3]);
    expect(verdict).toMatchObject({ state: 'open', isFinal: false, found: { notCommitted: [range(3)] } });
  });

  test('without a ledger span names only gaps and repeats', () => {
    const verdict = judge([], [1, 2, 4]);
    expect(verdict).toMatchObject({ state: 'incomplete', committedTo: 0, chain: null, isFinal: false });
    expect(verdict.found).toEqual({ missing: [range(3)] });
    expect(judge([], [1, 2])).toMatchObject({ state: 'uncommitted', found: {} });
  });

  test('expects the first record and the first ledger span', () => {
    expect(judge([], [2]).found).toEqual({ missing: [range(1)] });
    expect(judge([ledgerOf(2, 2, 2, FINAL)], [2]).found).toEqual({
      missing: [range(1)],
      missingLedgers: [range(1)],
    });
  });

  test('names a record after the end', () => {
    const verdict = judge([ledgerOf(1, 1, 2, FINAL)], [1, 2, 3]);
    expect(verdict).toMatchObject({ state: 'incomplete', isFinal: false, found: { unexpected: [range(3)] } });
  });

  test('names records whose ledger span is missing, and those that one says are not there', () => {
    const verdict = judge(
      [ledgerOf(1, 1, 3, { dropped: [range(2)] }), ledgerOf(3, 6, 6)],
      [1, 2, 3, 4, 6, 7],
    );
    expect(verdict.found).toEqual({
      unexpected: [range(2)],
      unproven: [range(4)],
      notCommitted: [range(7)],
      missing: [range(5)],
      missingLedgers: [range(2)],
    });
  });

  test('names a record in front of the end as unproven where its ledger span is missing', () => {
    const unproven = { unproven: [range(2)], missingLedgers: [range(2)] };
    expect(judge([ledgerOf(1, 1, 1), ledgerOf(3, 3, 3, FINAL)], [1, 2, 3]).found).toEqual(unproven);
    // The last one covers no record.
    for (const last of [{}, FINAL])
      expect(judge([ledgerOf(1, 1, 1), ledgerOf(3, 3, 2, last)], [1, 2]).found).toEqual(unproven);
  });

  test('names rejected records, and does not miss them', () => {
    const verdict = judge([ledgerOf(1, 1, 4, FINAL)], [1, 4], { rejected: [2, 3] });
    expect(verdict.found).toEqual({ rejected: [range(2, 3)] });
    expect(judge([], [1, 7], { rejected: [3, 5] }).found).toEqual({
      missing: [range(2), range(4), range(6)],
      rejected: [range(3), range(5)],
    });
  });

  test('does not call a record changed that is not there', () => {
    const second = ledgerOf(2, 2, 3, { digests: Buffer.alloc(2 * DIGEST_BYTES, 9) });
    const { found } = judge([ledgerOf(1, 1, 2), second], [1]);
    expect(found).toEqual({ missing: [range(2, 3)], brokenChain: [2] });
  });
});

describe('a part', () => {
  const asPart = { isPart: true };

  test('may begin anywhere', () => {
    expect(judge([ledgerOf(7, 70, 71)], [70, 71], asPart)).toMatchObject({ state: 'open', found: {} });
    expect(judge([ledgerOf(7, 70, 71, FINAL)], [70, 71], asPart)).toMatchObject({ state: 'open', found: {} });
    expect(judge([], [70, 71], asPart)).toMatchObject({ state: 'uncommitted', found: {} });
    expect(judge([ledgerOf(1, 1, 2, FINAL)], [1, 2], asPart).state).toBe('complete');
  });

  test('begins with the first record that its ledger spans cover, though it is missing', () => {
    expect(judge([ledgerOf(7, 70, 71)], [71], asPart).found).toEqual({ missing: [range(70)] });
    expect(judge([ledgerOf(7, 70, 70), ledgerOf(8, 71, 71)], [71], asPart).found).toEqual({
      missing: [range(70)],
    });
  });

  test('without ledger spans begins with its first record', () => {
    expect(judge([], [1, 3], asPart).found).toEqual({ missing: [range(2)] });
    expect(judge([], [70, 72], asPart).found).toEqual({ missing: [range(71)] });
  });

  test('may have records of a ledger span that is not in it: sums are not compared', () => {
    const { state, finding } = judge([ledgerOf(2, 2, 3, FINAL)], [1, 2, 3], asPart);
    expect([state, finding.sumsDiffer]).toEqual(['open', false]);
  });
});

describe('the sums of the ledger', () => {
  const sums = { prompt: 20, completion: 10, cached: 4 };

  test.each([
    ['prompt', { ...sums, prompt: 21 }],
    ['completion', { ...sums, completion: 9 }],
    ['cached', { ...sums, cached: 5 }],
  ])('are compared with those of the records: %s tokens', (_, tokens) => {
    const { finding } = judge([ledgerOf(1, 1, 2, { ...FINAL, tokens })], [1, 2]);
    expect(finding.sumsDiffer).toBe(true);
  });

  test('are those of all ledger spans', () => {
    expect(judge([ledgerOf(1, 1, 1), ledgerOf(2, 2, 2, FINAL)], [1, 2]).finding.sumsDiffer).toBe(false);
  });

  test('are not compared where records are missing, or may follow', () => {
    const tokens = { ...sums, prompt: 21 };
    expect(judge([ledgerOf(1, 1, 2, { ...FINAL, tokens })], [1]).finding.sumsDiffer).toBe(false);
    expect(judge([ledgerOf(1, 1, 2, { tokens })], [1, 2]).finding.sumsDiffer).toBe(false);
  });
});

describe('a ledger span', () => {
  test('that was sent twice is harmless, but not with the chain of the first and other attributes', () => {
    const once = ledgerOf(1, 1, 2, FINAL);
    expect(judge([once, once], [1, 2])).toMatchObject({ state: 'complete', ledgerSpans: 1, found: {} });
    expect(judge([once, { ...once, isIntact: false }], [1, 2]).found).toEqual({ changedLedgers: [1] });
  });

  test('that differs from another with its number is named, and the first one counts', () => {
    const { found, committedTo } = judge(
      [ledgerOf(1, 1, 2), ledgerOf(1, 1, 3, { chain: 'another' })],
      [1, 2],
    );
    expect(found).toEqual({ changedLedgers: [1] });
    expect(committedTo).toBe(2);
  });

  test('that was changed proves nothing, and the numbers of such ones are in order', () => {
    const forged = [12, 2].map((number) => ledgerOf(number, 1, 2, { isIntact: false }));
    const { found, ledgerSpans } = judge(forged, [1, 2]);
    expect(found).toEqual({ changedLedgers: [2, 12] });
    expect(ledgerSpans).toBe(0);
  });

  test.each<[string, ExportedLedger]>([
    ['fewer digests than numbers', ledgerOf(1, 1, 2, { digests: digestOf(1) })],
    ['another count than numbers', ledgerOf(1, 1, 2, { count: 1 })],
    ['another count and as many digests', ledgerOf(1, 1, 2, { count: 1, digests: digestOf(1) })],
    ['the number 0', ledgerOf(0, 1, 2)],
    ['records from the number 0', ledgerOf(1, 0, 2)],
    ['an end before its beginning', ledgerOf(1, 5, 2, { count: 0, digests: Buffer.alloc(0) })],
    [
      'a record that is absent for two reasons',
      ledgerOf(1, 1, 3, { dropped: [range(1, 2)], lost: [range(2)], ...withDigests(0) }),
    ],
    ['an absent record before its first', ledgerOf(1, 2, 3, { lost: [range(1)], ...withDigests(1) })],
    ['an absent record after its last', ledgerOf(1, 1, 2, { unencodable: [range(3)], ...withDigests(1) })],
  ])('with %s is one that was changed', (_, ledger) => {
    expect(judge([ledger], []).found).toEqual({ changedLedgers: [ledger.number] });
  });

  test('may cover no record, and absent records in any order', () => {
    const absent = { dropped: [range(4)], lost: [range(1)], unencodable: [range(2)] };
    const { finding } = judge([ledgerOf(1, 1, 4, absent), ledgerOf(2, 5, 4)], [3]);
    expect(finding.changedLedgers).toEqual([]);
    const { dropped, lost, unencodable } = finding.declared;
    expect([dropped.ranges, lost.ranges, unencodable.ranges]).toEqual([[range(4)], [range(1)], [range(2)]]);
    expect(finding.missing.count).toBe(0);
  });
});

describe('the chain is broken', () => {
  const [first, third] = [ledgerOf(1, 1, 1), ledgerOf(3, 3, 3)];

  test.each<[string, readonly ExportedLedger[], readonly number[]]>([
    ['by a first span that follows another', [ledgerOf(1, 1, 1, { previous: 'x' })], [1]],
    ['by a first span that does not begin with the first record', [ledgerOf(1, 2, 2)], [1]],
    ['by a span that follows another one', [first, ledgerOf(2, 2, 2, { previous: 'x' }), third], [2]],
    ['by a span that leaves out a record', [first, ledgerOf(2, 3, 3)], [2]],
    ['by a span after the last', [ledgerOf(1, 1, 1, FINAL), ledgerOf(2, 2, 2)], [2]],
    ['by none of those that follow each other', [first, ledgerOf(2, 2, 2), third], []],
    ['by none after one that is missing', [first, third, ledgerOf(4, 4, 4)], []],
  ])('%s', (_, ledgers, numbers) => {
    expect(judge(ledgers, [1, 2, 3, 4]).finding.brokenChain).toEqual(numbers);
  });

  test('by none at the beginning of a part', () => {
    expect(judge([third], [3], { isPart: true }).found).toEqual({});
  });

  test('nowhere by missing spans, which are named', () => {
    expect(judge([first, ledgerOf(4, 2, 2), ledgerOf(6, 3, 3)], [1, 2, 3]).found).toEqual({
      missingLedgers: [range(2, 3), range(5)],
    });
  });
});
