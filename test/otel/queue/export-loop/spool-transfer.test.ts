import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Spool } from '#otel/disk';
import type { ExportOutcome } from '#otel/export';
import { LedgerOutbox, NO_LEDGER } from '#otel/ledger';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { settle, VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { Drops } from '../../../../otel/queue/drops.ts';
import { ExportLoop } from '../../../../otel/queue/export-loop/export-loop.ts';
import { SpoolTransfer } from '../../../../otel/queue/export-loop/spool-transfer.ts';
import { ExportCounters } from '../../../../otel/queue/export-stats.ts';
import { createRecordQueue } from '../create-queue.ts';
import { createMemoryDisk, type MemoryDisk } from '../memory-spool.ts';

const SETTINGS = { batchSize: 3, intervalMs: 1000, retry: { initialMs: 500, maxMs: 5000 } };
const TAKEN: ExportOutcome = { kind: 'taken', rejectedCount: 0 };
const UNAVAILABLE: ExportOutcome = { kind: 'answered', status: 503 };

type Answer = (records: readonly string[]) => ExportOutcome | Promise<ExportOutcome>;

/** One run of a gateway's export. The disk outlives it. */
function startRun(
  disk: MemoryDisk,
  { capacity = 100, batchSize = 3, answer = (): ExportOutcome => TAKEN } = {},
) {
  const clock = new VirtualClock();
  const queue = createRecordQueue({ capacity, capacityBytes: 1_000_000 });
  const counters = new ExportCounters();
  const spoolTransfer = new SpoolTransfer({ spool: disk.openSpool(), queue, counters });
  const batches: string[][] = [];
  let answerBatch: Answer = answer;
  const loop = new ExportLoop(
    { ...SETTINGS, batchSize },
    {
      queue,
      spoolTransfer,
      ledger: NO_LEDGER,
      ledgerOutbox: new LedgerOutbox(createMemoryDisk().openSpool()),
      counters,
      clock,
      log: createQuietLog(),
      drops: new Drops(queue, createQuietLog()),
      random: () => 0.5,
      exportBatch: async (encodedSpans) => {
        const records = encodedSpans.map((encodedSpan) => Buffer.from(encodedSpan).toString());
        batches.push(records);
        return answerBatch(records);
      },
    },
  );
  return {
    clock,
    queue,
    counters,
    batches,
    answerWith(next: Answer) {
      answerBatch = next;
    },
    offer(...records: readonly string[]) {
      for (const record of records) {
        counters.add('recorded');
        if (queue.offer({ encodedSpan: Buffer.from(record), queuedAtMs: clock.nowMs() })) loop.notify();
        else counters.add('dropped');
      }
    },
    async stop(deadlineMs = 0) {
      const stopped = loop.stop(deadlineMs);
      await clock.advance(deadlineMs);
      await stopped;
      await spoolTransfer.storeQueue();
    },
    accountFor: () =>
      counters.values.exported +
      counters.values.dropped +
      counters.values.rejected +
      queue.size +
      counters.values.spooled +
      counters.values.lost,
  };
}

/** A disk on which an earlier run left these records. */
async function diskWith(...records: readonly string[]): Promise<MemoryDisk> {
  const disk = createMemoryDisk();
  await disk.openSpool().put(records.map((record) => Buffer.from(record)));
  return disk;
}

describe('the records of an earlier run', () => {
  test('are sent before new records, file by file, and removed when they are accepted', async () => {
    const disk = await diskWith('a', 'b', 'c', 'd');
    const run = startRun(disk);
    run.offer('x', 'y');
    await run.clock.advance(1000);
    expect(run.batches).toEqual([['a', 'b', 'c'], ['d'], ['x', 'y']]);
    expect(disk.files).toEqual([]);
    expect(run.counters.values).toMatchObject({ recorded: 2, restored: 4, exported: 6 });
  });

  test('stay on disk until they are accepted or rejected', async () => {
    const disk = await diskWith('a', 'b', 'c', 'd');
    const run = startRun(disk, { answer: () => UNAVAILABLE });
    await run.clock.advance(60_000);
    expect(disk.files).toEqual([['a', 'b', 'c'], ['d']]);
    expect(run.counters.values).toMatchObject({ restored: 3 });
    run.answerWith(() => ({ kind: 'answered', status: 400 }));
    await run.clock.advance(60_000);
    expect(disk.files).toEqual([]);
    expect(run.counters.values).toMatchObject({ restored: 4, rejected: 4 });
  });

  test('are repeated by at most one batch if the process is killed meanwhile', async () => {
    const disk = await diskWith('a', 'b', 'c', 'd', 'e', 'f');
    const held = Promise.withResolvers<ExportOutcome>();
    const killed = startRun(disk, { batchSize: 2 });
    killed.answerWith(([first]) => (first === 'd' ? held.promise : TAKEN));
    await settle();
    expect(killed.batches).toEqual([['a', 'b'], ['c'], ['d', 'e']]);
    const next = startRun(disk);
    await settle();
    expect(next.batches).toEqual([['d', 'e', 'f']]);
  });

  test('are restored when a full queue has room again', async () => {
    const disk = await diskWith('a', 'b', 'c');
    const run = startRun(disk, { capacity: 4, answer: () => UNAVAILABLE });
    run.offer('w', 'x', 'y', 'z');
    await settle();
    run.answerWith(() => TAKEN);
    await run.clock.advance(10_000);
    expect(run.queue.size).toBe(0);
    expect(run.counters.values).toMatchObject({ restored: 3, exported: 7, dropped: 0 });
  });

  test('are restored in parts if the queue cannot hold them all', async () => {
    const disk = await diskWith('a', 'b', 'c');
    const run = startRun(disk, { capacity: 2 });
    await run.clock.advance(1000);
    expect(run.batches).toEqual([['a', 'b'], ['c']]);
    expect(disk.files).toEqual([]);
  });

  test('are sent once, also when a file is longer than a batch', async () => {
    const disk = await diskWith('a', 'b', 'c', 'd', 'e');
    const run = startRun(disk, { batchSize: 2 });
    await run.clock.advance(60_000);
    expect(run.batches).toEqual([['a', 'b'], ['c'], ['d', 'e']]);
    expect(run.counters.values).toMatchObject({ restored: 5, exported: 5 });
  });

  test('stay in their files once a shutdown begins', async () => {
    const disk = await diskWith('a', 'b', 'c', 'd');
    const run = startRun(disk, { answer: () => UNAVAILABLE });
    await settle();
    run.offer('x');
    await run.stop(1000);
    expect(disk.files).toEqual([['a', 'b', 'c'], ['d'], ['x']]);
    expect(run.counters.values).toMatchObject({ recorded: 1, restored: 3, spooled: 4 });
    expect(run.queue.size).toBe(0);
  });
});

test('a file that is read while the queue is stored stays in the spool, and no record counts as undelivered', async () => {
  const disk = await diskWith('a', 'b');
  const memory = disk.openSpool();
  const isRead = Promise.withResolvers<void>();
  const isWritten = Promise.withResolvers<void>();
  const spool: Spool = {
    unreadableFiles: 0,
    async next() {
      await isRead.promise;
      return memory.next();
    },
    async put(encodedSpans) {
      await isWritten.promise;
      return memory.put(encodedSpans);
    },
  };
  const queue = createRecordQueue({ capacity: 10, capacityBytes: 1_000 });
  const counters = new ExportCounters();
  const transfer = new SpoolTransfer({ spool, queue, counters });
  queue.offer({ encodedSpan: Buffer.from('x'), queuedAtMs: 0 });

  const restored = transfer.restoreNext();
  const stored = transfer.storeQueue();
  isRead.resolve();
  await restored;
  isWritten.resolve();
  await stored;
  expect(disk.files).toEqual([['a', 'b'], ['x']]);
  expect(queue.size).toBe(0);
  expect(counters.values).toMatchObject({ restored: 0, spooled: 1 });
});

test('records that cannot be stored still count as queued', async () => {
  const disk = createMemoryDisk();
  disk.freeFiles = 1;
  const run = startRun(disk, { answer: () => UNAVAILABLE });
  run.offer('a', 'b', 'c', 'd', 'e');
  await run.stop();
  expect(disk.files).toEqual([['a', 'b', 'c']]);
  expect(run.queue.size).toBe(2);
  expect(run.counters.values.spooled).toBe(3);
});

test('each record ends in exactly one counter, over any number of restarts', async () => {
  const outcome = fc.oneof(
    { weight: 3, arbitrary: fc.constant<ExportOutcome>(UNAVAILABLE) },
    fc.integer({ min: 0, max: 3 }).map((rejectedCount): ExportOutcome => ({ kind: 'taken', rejectedCount })),
    fc.constantFrom(400, 413).map((status): ExportOutcome => ({ kind: 'answered', status })),
    fc.constant<ExportOutcome>({ kind: 'unanswered', code: 'ECONNRESET' }),
  );
  const runOf = fc.record({
    bursts: fc.array(fc.record({ count: fc.nat(7), pauseMs: fc.nat(2000) }), { maxLength: 4 }),
    outcomes: fc.array(outcome, { maxLength: 8 }),
    /** The collector's answer after those. */
    rest: fc.constantFrom(TAKEN, UNAVAILABLE),
    capacity: fc.integer({ min: 2, max: 12 }),
    deadlineMs: fc.nat(2000),
    freeFiles: fc.constantFrom(0, 1, 100),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(runOf, { minLength: 1, maxLength: 4 }), async (plan) => {
      const disk = createMemoryDisk();
      let inSpool = 0;
      for (const { bursts, outcomes, rest, capacity, deadlineMs, freeFiles } of plan) {
        disk.freeFiles = freeFiles;
        const run = startRun(disk, { capacity });
        const script = [...outcomes];
        run.answerWith(() => script.shift() ?? rest);
        const expectSum = () => {
          expect(run.accountFor()).toBe(run.counters.values.recorded + run.counters.values.restored);
          expect(run.queue.size).toBeLessThanOrEqual(capacity);
        };
        for (const { count, pauseMs } of bursts) {
          run.offer(...Array.from({ length: count }, (_, index) => `r${index}`));
          await run.clock.advance(pauseMs);
          expectSum();
        }
        await run.stop(deadlineMs);
        expectSum();
        inSpool += run.counters.values.spooled - run.counters.values.restored;
        expect(disk.files.flat()).toHaveLength(inSpool);
      }
    }),
  );
});

describe('files of an earlier run', () => {
  /** A spool with these files, and what was settled: the number of the file and of its records. */
  function createFiles(
    ...files: readonly { readonly words: readonly string[]; readonly damaged?: number }[]
  ) {
    const settled: (readonly [file: number, count: number])[] = [];
    let readCount = 0;
    const spool: Spool = {
      unreadableFiles: 0,
      async next() {
        const file = readCount++;
        const found = files[file];
        if (found === undefined) return undefined;
        return {
          encodedSpans: found.words.map((word) => Buffer.from(word)),
          damagedCount: found.damaged ?? 0,
          settle: async (count) => void settled.push([file, count]),
        };
      },
      put: async (encodedSpans) => encodedSpans.length,
    };
    const queue = createRecordQueue({ capacity: 100, capacityBytes: 1_000_000 });
    const counters = new ExportCounters();
    return { settled, queue, counters, transfer: new SpoolTransfer({ spool, queue, counters }) };
  }

  test('that are damaged count the records that cannot be read, and are gone if none can', async () => {
    const { settled, queue, counters, transfer } = createFiles(
      { words: [], damaged: 2 },
      { words: ['a'], damaged: 3 },
    );
    await transfer.restoreNext();
    expect(settled).toEqual([[0, 0]]);
    expect([queue.size, transfer.restoredAtHead]).toEqual([1, 1]);
    expect(counters.values).toMatchObject({ unreadable: 5, restored: 1 });
  });

  test('are settled by their own records alone', async () => {
    const { settled, queue, transfer } = createFiles({ words: ['a', 'b'] });
    await transfer.restoreNext();
    queue.offer({ encodedSpan: Buffer.from('x'), queuedAtMs: 0 });
    queue.remove(3);
    await transfer.settle(3);
    await transfer.settle(1);
    expect(settled).toEqual([[0, 2]]);
  });

  test('keep their records at a shutdown: none of them is in the queue any more', async () => {
    const { settled, queue, counters, transfer } = createFiles({ words: ['a', 'b'] });
    await transfer.restoreNext();
    await transfer.storeQueue();
    expect([queue.size, transfer.restoredAtHead, settled]).toEqual([0, 0, []]);
    expect(counters.values).toMatchObject({ restored: 2, spooled: 2 });
  });
});
