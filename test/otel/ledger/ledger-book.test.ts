import { expect, test } from 'vitest';
import { LedgerBook } from '../../../otel/ledger/ledger-book.ts';

test('a page is full with 256 ranges, of whichever kind', () => {
  const book = new LedgerBook('a', () => 1);
  book.notQueued(1, 'dropped');
  book.lost(1);
  book.notQueued(3, 'unencodable');
  book.rejected(1);
  for (let seq = 1; seq <= 251; seq++) book.rejectedElsewhere('earlier', seq);
  expect(book.isFull).toBe(false);
  book.rejectedElsewhere('earlier', 252);
  expect(book.isFull).toBe(true);
});
