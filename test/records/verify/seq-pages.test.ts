import { expect, test } from 'vitest';
import {
  createPageAllowance,
  SEQ,
  SeqPages,
  TooManyRecordsError,
} from '../../../src/records/verify/seq-pages.ts';

const DIGEST = Buffer.alloc(32, 1);
const MB = 1_000_000;

test('60,000 numbers that are far apart take little memory, and more than 65,536 such pages are an error', () => {
  const pages = new SeqPages(createPageAllowance());
  const before = process.memoryUsage().arrayBuffers;
  for (let nth = 0; nth < 60_000; nth++) expect(pages.see(nth * 1024 + (nth % 1000), DIGEST)).toBe(true);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * MB);
  const runs = [...pages.runs(0, pages.lastSeen)];
  const seen = runs.filter(({ flags }) => flags === SEQ.seen);
  expect(seen).toHaveLength(60_000);
  expect(seen.every(({ first, last }, nth) => first === last && first === nth * 1024 + (nth % 1000))).toBe(
    true,
  );
  expect(() => {
    for (let nth = 60_000; nth <= 65_536; nth++) pages.see(nth * 1024, DIGEST);
  }).toThrow(TooManyRecordsError);
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
