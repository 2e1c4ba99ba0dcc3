import { describe, expect, test } from 'vitest';
import {
  createPageAllowance,
  SEQ,
  SeqPages,
  TooManyRecordsError,
} from '../../../src/records/verify/seq-pages.ts';

const DIGEST = Buffer.alloc(32, 1);
/** What a ledger keeps of it. */
const SHORT = DIGEST.subarray(0, 16);
const MB = 1_000_000;

test('60,000 numbers that are far apart take little memory, and more than 65,536 such pages are an error', () => {
  const pages = new SeqPages(createPageAllowance());
  const before = process.memoryUsage().arrayBuffers;
  const nths = Array.from({ length: 60_000 }, (_, nth) => nth);
  expect(nths.filter((nth) => !pages.see(nth * 1024 + (nth % 1000), DIGEST))).toEqual([]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * MB);
  const runs = [...pages.runs(0, pages.lastSeen)];
  const seen = runs.filter(({ flags }) => flags === SEQ.seen);
  expect(seen).toHaveLength(60_000);
  expect(seen.every(({ first, last }, nth) => first === last && first === nth * 1024 + (nth % 1000))).toBe(
    true,
  );
  expect(() => {
    for (let nth = 60_000; nth <= 65_536; nth++) pages.see(nth * 1024, DIGEST);
  }).toThrow(expect.objectContaining({ name: 'TooManyRecordsError' }));
});

test('the runs cover each number once, whatever is known of it', () => {
  const pages = new SeqPages(createPageAllowance());
  const seqs = [1, 2, 63, 64, 65, 127, 1023, 1024, 5000];
  for (const seq of seqs) pages.see(seq, DIGEST);
  pages.commit(64, DIGEST.subarray(0, 16));
  let next = 1;
  const found: number[] = [];
  for (const { first, last, flags } of pages.runs(1, 6000)) {
    expect(first).toBe(next);
    next = last + 1;
    for (let seq = first; flags !== 0 && seq <= last; seq++) found.push(seq);
  }
  expect(next).toBe(6001);
  expect(found).toEqual(seqs);
});

describe('what is known of a number', () => {
  const OTHER = Buffer.alloc(16, 2);
  const flagsOf = (tell: (pages: SeqPages) => void): number => {
    const pages = new SeqPages({ left: 1 });
    tell(pages);
    const [run] = [...pages.runs(5, 5)];
    return run?.flags ?? -1;
  };

  test.each<[string, number, (pages: SeqPages) => void]>([
    ['nothing', 0, () => undefined],
    ['a record', SEQ.seen, (pages) => pages.see(5, DIGEST)],
    ['a digest', SEQ.committed, (pages) => pages.commit(5, SHORT)],
    [
      'a record before its digest',
      SEQ.seen | SEQ.committed,
      (pages) => {
        pages.see(5, DIGEST);
        pages.commit(5, SHORT);
      },
    ],
    [
      'a record after its digest',
      SEQ.seen | SEQ.committed,
      (pages) => {
        pages.commit(5, SHORT);
        pages.see(5, DIGEST);
      },
    ],
    [
      'a record before another digest',
      SEQ.seen | SEQ.committed | SEQ.changed,
      (pages) => {
        pages.see(5, DIGEST);
        pages.commit(5, OTHER);
      },
    ],
    [
      'a record after another digest',
      SEQ.seen | SEQ.committed | SEQ.changed,
      (pages) => {
        pages.commit(5, OTHER);
        pages.see(5, DIGEST);
      },
    ],
    [
      'two digests',
      SEQ.committed | SEQ.changed,
      (pages) => {
        pages.commit(5, SHORT);
        pages.commit(5, OTHER);
      },
    ],
    [
      'the same record twice',
      SEQ.seen | SEQ.doubled,
      (pages) => {
        pages.see(5, DIGEST);
        pages.see(5, DIGEST);
      },
    ],
    [
      'two records that differ',
      SEQ.seen | SEQ.doubled | SEQ.changed,
      (pages) => {
        pages.see(5, DIGEST);
        pages.see(5, OTHER);
      },
    ],
    ['a record that no gateway has sent', SEQ.seen | SEQ.changed, (pages) => pages.see(5, null)],
  ])('is %s', (_, flags, tell) => {
    expect(flagsOf(tell)).toBe(flags);
  });

  test('is in the last number only of records, not of digests', () => {
    const pages = new SeqPages({ left: 1 });
    pages.commit(9, SHORT);
    expect(pages.lastSeen).toBe(0);
    pages.see(7, DIGEST);
    pages.see(5, DIGEST);
    expect(pages.lastSeen).toBe(7);
  });
});

test('an error is thrown at the first page beyond the allowance, which all instances share', () => {
  const allowance = { left: 2 };
  const [a, b] = [new SeqPages(allowance), new SeqPages(allowance)];
  a.see(1, DIGEST);
  b.see(1, DIGEST);
  a.see(1023, DIGEST);
  expect(() => a.see(1024, DIGEST)).toThrow(TooManyRecordsError);
  expect(() => a.see(2048, DIGEST)).toThrow(expect.objectContaining({ name: 'TooManyRecordsError' }));
});

describe('runs of numbers', () => {
  const { seen } = SEQ;
  const runsOf = (seqs: readonly number[], first: number, last: number) => {
    const pages = new SeqPages(createPageAllowance());
    for (const seq of seqs) pages.see(seq, DIGEST);
    return [...pages.runs(first, last)].map((run) => [run.first, run.last, run.flags]);
  };

  test('of which the same is known are one', () => {
    expect(runsOf([1, 2, 3, 5, 6], 1, 7)).toEqual([
      ...[
        [1, 3, seen],
        [4, 4, 0],
        [5, 6, seen],
        [7, 7, 0],
      ],
    ]);
  });

  test('of which nothing is known end at the next one, in whichever order pages and blocks came', () => {
    const next = [64, 128, 1024, 1100, 5000, 9_000_000];
    for (const seq of next) {
      for (const first of [1, 50, 63]) {
        expect(runsOf([9_500_000, seq, 2], first, seq)).toEqual([
          ...(first === 1
            ? [
                [1, 1, 0],
                [2, 2, seen],
                [3, seq - 1, 0],
              ]
            : [[first, seq - 1, 0]]),
          [seq, seq, seen],
        ]);
      }
    }
    expect(runsOf([9000, 5000], 70, 9000)).toEqual([
      [70, 4999, 0],
      [5000, 5000, seen],
      [5001, 8999, 0],
      [9000, 9000, seen],
    ]);
    expect(runsOf([1, 128], 70, 128)).toEqual([
      [70, 127, 0],
      [128, 128, seen],
    ]);
  });

  test('end where they are asked to, and there are none of no numbers', () => {
    expect(runsOf([], 1, 5)).toEqual([[1, 5, 0]]);
    expect(runsOf([1, 2, 3], 1, 2)).toEqual([[1, 2, seen]]);
    expect(runsOf([1, 2, 3], 3, 2)).toEqual([]);
  });
});
