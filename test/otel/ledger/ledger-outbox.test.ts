import { expect, test } from 'vitest';
import { LedgerOutbox } from '#otel/ledger';
import { createMemoryDisk } from '../queue/memory-spool.ts';

const span = (text: string) => Buffer.from(text);
const textOf = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? null : Buffer.from(bytes).toString();

/** Sends all that an outbox has. */
async function sendAll(outbox: LedgerOutbox): Promise<readonly (string | null)[]> {
  const sent: (string | null)[] = [];
  for (;;) {
    await outbox.restoreNext();
    if (outbox.first === undefined) return sent;
    sent.push(textOf(outbox.first));
    await outbox.settleFirst();
  }
}

test('ledger spans of this run are told of and sent in their order', async () => {
  const outbox = new LedgerOutbox(createMemoryDisk().openSpool());
  let added = 0;
  outbox.onAdded = () => added++;
  for (const text of ['a', 'b']) outbox.add(span(text));
  expect([outbox.size, added]).toEqual([2, 2]);
  expect(await sendAll(outbox)).toEqual(['a', 'b']);
  expect(outbox.size).toBe(0);
});

test('what is not sent goes to disk and comes first at the next start, one file after another', async () => {
  const disk = createMemoryDisk();
  const first = new LedgerOutbox(disk.openSpool());
  for (const text of ['a', 'b', 'c', 'd', 'e']) first.add(span(text));
  await first.store();
  expect([first.size, disk.files]).toEqual([
    0,
    [
      ['a', 'b', 'c'],
      ['d', 'e'],
    ],
  ]);

  const second = new LedgerOutbox(disk.openSpool());
  second.add(span('new'));
  await second.restoreNext();
  await second.restoreNext();
  expect([second.size, textOf(second.first)]).toEqual([4, 'a']);
  await second.settleFirst();
  expect([second.size, disk.files]).toEqual([
    3,
    [
      ['b', 'c'],
      ['d', 'e'],
    ],
  ]);
  expect(await sendAll(second)).toEqual(['b', 'c', 'd', 'e', 'new']);
  expect([second.size, disk.files]).toEqual([0, []]);
});

test('an outbox without ledger spans writes no file, and what the disk does not take stays', async () => {
  const disk = createMemoryDisk();
  const outbox = new LedgerOutbox(disk.openSpool());
  await outbox.store();
  expect(disk.files).toEqual([]);
  for (const text of ['a', 'b', 'c', 'd']) outbox.add(span(text));
  disk.freeFiles = 1;
  await outbox.store();
  expect([outbox.size, textOf(outbox.first)]).toEqual([1, 'd']);
});

/** An outbox whose spool has these files, and what it has settled: the number of the file and of its ledger spans. */
function startWithFiles(...files: readonly (readonly Uint8Array[])[]) {
  const settled: (readonly [file: number, count: number])[] = [];
  let readCount = 0;
  const outbox = new LedgerOutbox({
    unreadableFiles: 0,
    async next() {
      const file = readCount++;
      const encodedSpans = files[file];
      if (encodedSpans === undefined) return undefined;
      return { encodedSpans, damagedCount: 0, settle: async (count) => void settled.push([file, count]) };
    },
    put: async () => 0,
  });
  return { outbox, settled };
}

test('a file of an earlier run without ledger spans is gone, and the next one is read', async () => {
  const { outbox, settled } = startWithFiles([], [span('a')]);
  await outbox.restoreNext();
  expect([textOf(outbox.first), settled]).toEqual(['a', [[0, 0]]]);
});

test('a ledger span of this run settles nothing in the file of an earlier one', async () => {
  const { outbox, settled } = startWithFiles([span('a')]);
  await outbox.restoreNext();
  outbox.add(span('new'));
  await outbox.settleFirst();
  await outbox.settleFirst();
  expect([outbox.size, settled]).toEqual([0, [[0, 1]]]);
});

test('a single ledger span goes to disk, too', async () => {
  const disk = createMemoryDisk();
  const outbox = new LedgerOutbox(disk.openSpool());
  outbox.add(span('a'));
  await outbox.store();
  expect(disk.files).toEqual([['a']]);
});
