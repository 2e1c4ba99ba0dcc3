import { expect, test } from 'vitest';
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
const EMPTY_SPOOL: Spool = { unreadableFiles: 0, next: async () => undefined, put: async () => 0 };

/** A loop with an outbox for ledger spans, and a scripted collector. Records and ledger spans are words. */
function startLoop({ disk = createMemoryDisk() as MemoryDisk, lastSpan = '' } = {}) {
  const clock = new VirtualClock();
  const queue = createRecordQueue({ capacity: 100, capacityBytes: 1_000_000 });
  const counters = new ExportCounters();
  const log = createQuietLog();
  const outbox = new LedgerOutbox(disk.openSpool());
  const calls: string[] = [];
  let answer: (call: string, signal: AbortSignal) => ExportOutcome | Promise<ExportOutcome> = () => TAKEN;
  const loop = new ExportLoop(SETTINGS, {
    queue,
    counters,
    clock,
    log,
    drops: new Drops(queue, log),
    random: () => 0.5,
    spoolTransfer: new SpoolTransfer({ spool: EMPTY_SPOOL, queue, counters }),
    ledger: {
      ...NO_LEDGER,
      end: () => {
        if (lastSpan !== '') outbox.add(Buffer.from(lastSpan));
      },
    },
    ledgerOutbox: outbox,
    async exportBatch(encodedSpans, signal) {
      const call = encodedSpans.map((encodedSpan) => Buffer.from(encodedSpan).toString()).join();
      calls.push(call);
      return await answer(call, signal);
    },
  });
  return {
    clock,
    queue,
    counters,
    log,
    outbox,
    calls,
    loop,
    answerWith(next: typeof answer) {
      answer = next;
    },
    offer(...words: readonly string[]) {
      for (const word of words) {
        if (queue.offer({ encodedSpan: Buffer.from(word), queuedAtMs: clock.nowMs() })) loop.notify();
      }
    },
    publish: (...words: readonly string[]) => {
      for (const word of words) outbox.add(Buffer.from(word));
    },
  };
}

test('ledger spans are sent at once, one in each call, and are in no counter of records', async () => {
  const { publish, calls, counters, outbox, offer, clock, log } = startLoop();
  await settle();
  publish('l1', 'l2');
  await settle();
  expect([calls, outbox.size]).toEqual([['l1', 'l2'], 0]);
  // The loop goes on.
  offer('a');
  await clock.advance(1000);
  publish('l3');
  await settle();
  expect(calls).toEqual(['l1', 'l2', 'a', 'l3']);
  expect(counters.values).toMatchObject({ exported: 1, failedCalls: 0 });
  expect(log.lines).toEqual([]);
});

test('ledger spans wait for the end of a batch', async () => {
  const { publish, calls, offer, answerWith } = startLoop();
  const held = Promise.withResolvers<ExportOutcome>();
  answerWith(() => held.promise);
  offer('a', 'b', 'c');
  await settle();
  publish('l1');
  await settle();
  expect(calls).toEqual(['a,b,c']);
  held.resolve(TAKEN);
  await settle();
  expect(calls).toEqual(['a,b,c', 'l1']);
});

test('a ledger span is sent again until the collector takes it', async () => {
  const { publish, calls, answerWith, clock, counters, outbox, log } = startLoop();
  answerWith(() => UNAVAILABLE);
  publish('l1');
  await settle();
  expect([calls.length, clock.sleepsMs]).toEqual([1, [250]]);
  await clock.advance(250);
  expect(calls).toEqual(['l1', 'l1']);
  answerWith(() => TAKEN);
  await clock.advance(500);
  expect([calls.length, outbox.size, counters.values.failedCalls]).toEqual([3, 0, 2]);
  expect(log.lines).toEqual([]);
});

test('a rejected ledger span is logged and gone, and those behind it are sent', async () => {
  const { publish, calls, answerWith, counters, outbox, log } = startLoop();
  const outcomes: Readonly<Record<string, ExportOutcome>> = {
    l1: { kind: 'answered', status: 400, message: 'no' },
    l2: { kind: 'taken', rejectedCount: 1, message: 'too old' },
    l3: { kind: 'answered', status: 413 },
    l4: { kind: 'taken', rejectedCount: 0, message: 'fine' },
  };
  answerWith((call) => outcomes[call] ?? TAKEN);
  publish('l1', 'l2', 'l3', 'l4');
  await settle();
  expect([calls, outbox.size]).toEqual([['l1', 'l2', 'l3', 'l4'], 0]);
  expect(counters.values).toMatchObject({ failedCalls: 2, rejected: 0, exported: 0 });
  expect(log.lines).toMatchObject([
    { level: 'error', fields: { reason: 'http_400', collector_message: 'no' } },
    { level: 'error', fields: { reason: 'partial_success', collector_message: 'too old' } },
    { level: 'error', fields: { reason: 'http_413' } },
  ]);
});

test('ledger spans of an earlier run are sent first, and their file is removed', async () => {
  const disk = createMemoryDisk();
  await disk.openSpool().put(['e1', 'e2'].map((word) => Buffer.from(word)));
  const { calls } = startLoop({ disk });
  await settle();
  expect([calls, disk.files]).toEqual([['e1', 'e2'], []]);
});

test('a shutdown ends the ledger when all records are sent, and sends what it says then', async () => {
  const { offer, calls, loop, outbox } = startLoop({ lastSpan: 'end' });
  offer('a', 'b', 'c', 'd');
  await loop.stop(5000);
  expect([calls, outbox.size]).toEqual([['a,b,c', 'd', 'end'], 0]);
});

test('a shutdown without records ends the ledger, too', async () => {
  const { calls, loop } = startLoop({ lastSpan: 'end' });
  await settle();
  await loop.stop(5000);
  expect(calls).toEqual(['end']);
});

test('at the deadline of a shutdown, a ledger span that was not answered stays, and no other is sent', async () => {
  const { publish, calls, answerWith, loop, clock, outbox, counters, log } = startLoop();
  answerWith(
    (_call, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'unanswered', code: 'aborted' }));
      }),
  );
  publish('l1', 'l2');
  const stopped = loop.stop(5000);
  await clock.advance(5000);
  await stopped;
  await settle();
  expect([calls, outbox.size, clock.sleepsMs]).toEqual([['l1'], 2, []]);
  // The collector has not failed.
  expect([counters.values.failedCalls, log.lines]).toEqual([0, []]);
});

test('a ledger span that is answered at the deadline is not sent again, and no other is sent', async () => {
  const { publish, calls, answerWith, loop, clock, outbox } = startLoop();
  const held = Promise.withResolvers<ExportOutcome>();
  answerWith(() => held.promise);
  publish('l1', 'l2');
  const stopped = loop.stop(5000);
  await clock.advance(5000);
  await stopped;
  held.resolve(TAKEN);
  await settle();
  expect([calls, outbox.size]).toEqual([['l1'], 1]);
});

test('a cut connection before the deadline is one more reason to send a ledger span again', async () => {
  const { publish, calls, answerWith, clock } = startLoop();
  answerWith(() => ({ kind: 'unanswered', code: 'ECONNRESET' }));
  publish('l1');
  await clock.advance(250);
  expect(calls).toEqual(['l1', 'l1']);
});
