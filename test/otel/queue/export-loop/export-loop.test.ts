import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Spool } from '#otel/disk';
import type { ExportBatch, ExportOutcome } from '#otel/export';
import { LedgerOutbox, NO_LEDGER } from '#otel/ledger';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { settle, VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { Drops } from '../../../../otel/queue/drops.ts';
import { ExportLoop } from '../../../../otel/queue/export-loop/export-loop.ts';
import { SpoolTransfer } from '../../../../otel/queue/export-loop/spool-transfer.ts';
import { ExportCounters } from '../../../../otel/queue/export-stats.ts';
import { createRecordQueue } from '../create-queue.ts';

const TAKEN: ExportOutcome = { kind: 'taken', rejectedCount: 0 };
const UNAVAILABLE: ExportOutcome = { kind: 'answered', status: 503 };
const SETTINGS = { batchSize: 3, intervalMs: 1000, retry: { initialMs: 500, maxMs: 5000 } };

const EMPTY_SPOOL: Spool = { unreadableFiles: 0, next: async () => undefined, put: async () => 0 };

/** A loop with a scripted collector, which keeps the batches it gets. Each record is a number. */
function startLoop({
  settings = SETTINGS,
  capacity = 100,
  random = (): number => 0.5,
  spool = EMPTY_SPOOL,
} = {}) {
  const clock = new VirtualClock();
  const queue = createRecordQueue({ capacity, capacityBytes: 100_000_000 });
  const counters = new ExportCounters();
  const log = createQuietLog();
  const batches: number[][] = [];
  let answer: (
    encodedSpans: readonly Uint8Array[],
    signal: AbortSignal,
  ) => ExportOutcome | Promise<ExportOutcome> = () => TAKEN;
  const exportBatch: ExportBatch = async (encodedSpans, signal) => {
    batches.push(encodedSpans.map((encodedSpan) => Number(Buffer.from(encodedSpan).toString())));
    return answer(encodedSpans, signal);
  };
  const spoolTransfer = new SpoolTransfer({ spool, queue, counters });
  const drops = new Drops(queue, log);
  /** The records that the ledger is told were rejected. */
  const rejected: string[] = [];
  const loop = new ExportLoop(settings, {
    drops,
    queue,
    ledger: {
      ...NO_LEDGER,
      rejected: (encodedSpans) => rejected.push(...encodedSpans.map((span) => Buffer.from(span).toString())),
    },
    ledgerOutbox: new LedgerOutbox(EMPTY_SPOOL),
    spoolTransfer,
    counters,
    exportBatch,
    clock,
    log,
    random,
  });
  let nextRecord = 0;
  return {
    clock,
    queue,
    counters,
    log,
    batches,
    loop,
    drops,
    rejected,
    answerWith(next: typeof answer) {
      answer = next;
    },
    /** Queues records whose encoded spans are `sizeBytes` long, or longer if the number is. */
    offer(count: number, sizeBytes = 0) {
      for (let index = 0; index < count; index += 1) {
        counters.add('recorded');
        const encodedSpan = Buffer.from(String(nextRecord).padStart(sizeBytes, '0'));
        nextRecord += 1;
        if (queue.offer({ encodedSpan, queuedAtMs: clock.nowMs() })) loop.notify();
        else counters.add('dropped');
      }
    },
  };
}

describe('a batch is sent', () => {
  test('when its first record has waited for the interval, and not before', async () => {
    const { clock, batches, offer } = startLoop();
    await settle();
    offer(1);
    await clock.advance(600);
    offer(1);
    await clock.advance(399);
    expect(batches).toEqual([]);
    await clock.advance(1);
    expect(batches).toEqual([[0, 1]]);
  });

  test('when it is a single record, too', async () => {
    const { clock, batches, offer } = startLoop();
    await settle();
    offer(1);
    await clock.advance(1000);
    expect(batches).toEqual([[0]]);
  });

  test('after its own first record has waited, though the batch before it took as long', async () => {
    const { clock, batches, offer, answerWith } = startLoop();
    const held = Promise.withResolvers<ExportOutcome>();
    answerWith(() => held.promise);
    offer(3);
    await settle();
    offer(1);
    await clock.advance(999);
    answerWith(() => TAKEN);
    held.resolve(TAKEN);
    await settle();
    expect(batches).toHaveLength(1);
    await clock.advance(1);
    expect(batches[1]).toEqual([3]);
  });

  test('and is known by its size until it is settled, also while its call is repeated', async () => {
    const { clock, loop, offer, answerWith } = startLoop();
    expect(loop.exportingCount).toBe(0);
    answerWith(() => UNAVAILABLE);
    offer(5);
    await settle();
    expect(loop.exportingCount).toBe(3);
    answerWith(() => TAKEN);
    await clock.advance(250);
    expect(loop.exportingCount).toBe(0);
  });

  test('at once when it is full, the rest when its own first record has waited', async () => {
    const { clock, batches, offer } = startLoop();
    await clock.advance(500);
    offer(7);
    await settle();
    expect(batches).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    await clock.advance(999);
    expect(batches).toHaveLength(2);
    await clock.advance(1);
    expect(batches[2]).toEqual([6]);
  });

  test('at once when a record fills it while the others wait', async () => {
    const { batches, offer } = startLoop();
    offer(2);
    await settle();
    expect(batches).toEqual([]);
    offer(1);
    await settle();
    expect(batches).toEqual([[0, 1, 2]]);
  });

  test('only after the one before it is settled', async () => {
    const { batches, offer, answerWith } = startLoop();
    const held = Promise.withResolvers<ExportOutcome>();
    answerWith(() => held.promise);
    offer(6);
    await settle();
    expect(batches).toEqual([[0, 1, 2]]);
    answerWith(() => TAKEN);
    held.resolve(TAKEN);
    await settle();
    expect(batches).toHaveLength(2);
  });
});

describe('a batch that the collector cannot accept', () => {
  test('is sent again with the same records, at growing intervals, until it is accepted', async () => {
    const { clock, batches, offer, answerWith, counters, queue } = startLoop();
    answerWith(() => UNAVAILABLE);
    offer(3);
    const waits: number[] = [];
    for (let failure = 0; failure < 6; failure += 1) {
      await settle();
      waits.push(clock.sleepsMs[0] ?? Number.NaN);
      await clock.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 2500, 2500]);
    expect(queue.size).toBe(3);
    answerWith(() => TAKEN);
    await clock.advance(2500);
    expect(batches).toHaveLength(8);
    expect(new Set(batches.map(String))).toEqual(new Set(['0,1,2']));
    expect(counters.values).toMatchObject({ failedCalls: 7, exported: 3, rejected: 0 });
  });

  test('waits as long as Retry-After says, even if the back-off would be shorter', async () => {
    const { clock, offer, answerWith } = startLoop({ random: () => 0 });
    answerWith(() => ({ kind: 'answered', status: 429, retryAfterMs: 30_000 }));
    offer(3);
    await settle();
    expect(clock.sleepsMs).toEqual([30_000]);
  });

  test('is an outage until one is answered', async () => {
    const { clock, offer, answerWith, loop, counters } = startLoop();
    answerWith(() => UNAVAILABLE);
    offer(3);
    await clock.advance(20_000);
    const { failedCalls } = counters.values;
    expect(loop.health.outage).toMatchObject({ reason: 'http_503', failedCalls });
    answerWith(() => TAKEN);
    await clock.advance(20_000);
    expect(loop.health.outage).toBeNull();
  });
});

describe('a batch that is too large', () => {
  const TOO_LARGE: ExportOutcome = { kind: 'answered', status: 413 };
  const settings = { ...SETTINGS, batchSize: 8 };
  const takeUpTo = (count: number) => (encodedSpans: readonly Uint8Array[]) =>
    encodedSpans.length > count ? TOO_LARGE : TAKEN;

  test('is halved until the collector accepts it, and later batches are as small', async () => {
    const { batches, offer, answerWith, counters, clock } = startLoop({ settings });
    answerWith(takeUpTo(2));
    offer(8, 100);
    await clock.advance(0);
    expect(batches.map((batch) => batch.length)).toEqual([8, 4, 2, 2, 2, 2]);
    expect(clock.nowMs()).toBe(0);
    expect(counters.values).toMatchObject({ exported: 8, rejected: 0, failedCalls: 2 });
  });

  test('is rejected once it is a single record; no other record is', async () => {
    const { offer, answerWith, counters, queue, clock } = startLoop({ settings });
    answerWith((encodedSpans) => (encodedSpans.some(({ length }) => length > 500) ? TOO_LARGE : TAKEN));
    offer(3, 100);
    offer(1, 1000);
    offer(4, 100);
    await clock.advance(1000);
    expect(counters.values).toMatchObject({ exported: 7, rejected: 1 });
    expect(queue.size).toBe(0);
  });

  test('keeps later batches small only for a while', async () => {
    const { batches, offer, answerWith, clock } = startLoop({ settings });
    answerWith(takeUpTo(4));
    offer(8, 100);
    await clock.advance(1000);
    answerWith(() => TAKEN);
    for (let round = 0; round < 60; round += 1) {
      offer(8, 100);
      await clock.advance(1000);
    }
    expect(batches.at(-1)).toHaveLength(8);
  });

  test('logs one line for each size that proved too large', async () => {
    const { offer, answerWith, clock, log } = startLoop({ settings });
    answerWith(takeUpTo(2));
    for (let round = 0; round < 30; round += 1) {
      offer(8, 100);
      await clock.advance(1000);
    }
    expect(log.lines).toMatchObject([
      { level: 'warn', fields: { reason: 'http_413', limit_bytes: 400 } },
      { level: 'warn', fields: { reason: 'http_413', limit_bytes: 200 } },
    ]);
  });

  test('is detected even if the collector cuts the connection without an answer', async () => {
    const { batches, offer, answerWith, counters, clock } = startLoop({ settings });
    answerWith((encodedSpans) => (encodedSpans.length > 4 ? { kind: 'unanswered', code: 'EPIPE' } : TAKEN));
    offer(8, 100);
    await clock.advance(10_000);
    expect(batches.map((batch) => batch.length)).toEqual([8, 8, 4, 4]);
    expect(counters.values).toMatchObject({ exported: 8, rejected: 0, failedCalls: 2 });
  });

  test('is not assumed for long of a proxy that cuts connections while its collector is away: later batches are full', async () => {
    const { batches, offer, answerWith, clock } = startLoop({ settings });
    answerWith(() => ({ kind: 'unanswered', code: 'ECONNRESET' }));
    offer(40, 100);
    await clock.advance(120_000);
    expect(batches.at(-1)).toHaveLength(1);
    answerWith(() => TAKEN);
    batches.length = 0;
    await clock.advance(5000);
    expect(batches.map((batch) => batch.length)).toEqual([1, 8, 8, 8, 8, 7]);
  });

  test('is counted by the bytes of its records and nothing else', async () => {
    const { batches, offer, answerWith } = startLoop();
    answerWith(takeUpTo(1));
    offer(3, 1);
    await settle();
    expect(batches.slice(0, 2).map((batch) => batch.length)).toEqual([3, 1]);
  });

  test('has its rest sent at once, however long the interval is', async () => {
    const { batches, offer, answerWith, clock } = startLoop({ settings: { ...settings, intervalMs: 1e9 } });
    answerWith((encodedSpans) => (encodedSpans.length > 4 ? { kind: 'unanswered', code: 'EPIPE' } : TAKEN));
    offer(8, 100);
    await clock.advance(10_000);
    expect(batches.map((batch) => batch.length)).toEqual([8, 8, 4, 4]);
  });

  test('is assumed only after two cut connections in a row', async () => {
    const { batches, offer, answerWith, clock } = startLoop();
    const outcomes: ExportOutcome[] = [
      { kind: 'unanswered', code: 'EPIPE' },
      UNAVAILABLE,
      { kind: 'unanswered', code: 'EPIPE' },
    ];
    answerWith(() => outcomes.shift() ?? TAKEN);
    offer(3);
    await clock.advance(60_000);
    expect(batches).toEqual([0, 1, 2, 3].map(() => [0, 1, 2]));
  });

  test('stays so while its parts are rejected: only an accepted one proves a larger limit', async () => {
    const { batches, offer, answerWith, clock } = startLoop();
    answerWith((encodedSpans) =>
      encodedSpans.length > 1 ? { kind: 'unanswered', code: 'EPIPE' } : { kind: 'answered', status: 400 },
    );
    offer(3, 1000);
    await clock.advance(60_000);
    expect(batches.map((batch) => batch.length)).toEqual([3, 3, 1, 1, 1]);
  });

  test('is not learnt from a single record: later cut connections are judged as the first ones', async () => {
    const { batches, offer, answerWith, clock } = startLoop();
    answerWith(() => ({ kind: 'unanswered', code: 'ECONNRESET' }));
    offer(1);
    await clock.advance(60_000);
    answerWith(() => TAKEN);
    await clock.advance(60_000);
    answerWith(() => ({ kind: 'unanswered', code: 'ECONNRESET' }));
    offer(3, 1000);
    await clock.advance(1_000);
    expect(batches.at(-1)).toHaveLength(1);
    answerWith(() => TAKEN);
    await clock.advance(60_000);
    batches.length = 0;
    offer(3, 1000);
    await settle();
    expect(batches.map((batch) => batch.length)).toEqual([3]);
  });

  test('is not assumed of a single record: it is retried for ever after cut connections', async () => {
    const { batches, offer, answerWith, counters, clock, queue } = startLoop({ settings });
    answerWith(() => ({ kind: 'unanswered', code: 'ECONNRESET' }));
    offer(1);
    await clock.advance(600_000);
    expect(batches.length).toBeGreaterThan(100);
    expect(counters.values.rejected).toBe(0);
    expect(queue.size).toBe(1);
  });
});

test('large records are sent as soon as they fill 4 MiB, and no call is larger', async () => {
  const { batches, offer } = startLoop({ settings: { ...SETTINGS, batchSize: 100 } });
  await settle();
  offer(4, 1024 * 1024 - 1);
  await settle();
  expect(batches).toEqual([]);
  offer(1, 1024 * 1024);
  await settle();
  expect(batches).toEqual([[0, 1, 2, 3]]);
});

test('records that fill 4 MiB to the byte are sent at once', async () => {
  const { batches, offer } = startLoop();
  await settle();
  offer(2, 2 * 1024 * 1024);
  await settle();
  expect(batches).toEqual([[0, 1]]);
});

test('a final rejection is one failed call, its records are rejected, and the next batch follows', async () => {
  const { offer, answerWith, counters, batches, rejected } = startLoop();
  answerWith((encodedSpans) => (encodedSpans[0]?.[0] === 0x30 ? { kind: 'answered', status: 400 } : TAKEN));
  offer(6);
  await settle();
  expect(rejected).toEqual(['0', '1', '2']);
  expect(counters.values).toMatchObject({ rejected: 3, exported: 3, failedCalls: 1 });
  expect(batches).toHaveLength(2);
});

test('a partial success is no failed call, and is never sent again', async () => {
  const { offer, answerWith, counters, batches } = startLoop();
  answerWith(() => ({ kind: 'taken', rejectedCount: 2 }));
  offer(3);
  await settle();
  expect(counters.values).toMatchObject({ rejected: 2, exported: 1, failedCalls: 0 });
  expect(batches).toHaveLength(1);
});

test('a batch that was taken in part is a rejection, one with a warning a line of the log, and a plain one neither', async () => {
  const { offer, answerWith, log, loop } = startLoop();
  const taken = async (partly: { rejectedCount: number; message?: string }) => {
    answerWith(() => ({ kind: 'taken', ...partly }));
    offer(3);
    await settle();
    return loop.health.rejection;
  };
  expect(await taken({ rejectedCount: 1 })).toMatchObject({ reason: 'partial_success', rejected: 1 });
  expect(await taken({ rejectedCount: 0 })).toMatchObject({ isGoingOn: false });
  expect(log.lines).toEqual([]);
  await taken({ rejectedCount: 0, message: 'old schema' });
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { collector_message: 'old schema' } }]);
});

test('after an answer, the first delay is as short as at first', async () => {
  const { clock, offer, answerWith } = startLoop();
  for (let outage = 0; outage < 2; outage++) {
    answerWith(() => UNAVAILABLE);
    offer(3);
    await settle();
    expect(clock.sleepsMs).toEqual([250]);
    answerWith(() => TAKEN);
    await clock.advance(250);
  }
});

test('dropping is over when the queue is half empty, and the end of the export says how many records it cost', async () => {
  const { offer, drops, answerWith, log, clock, loop, queue } = startLoop({ capacity: 6 });
  answerWith(() => UNAVAILABLE);
  offer(6);
  drops.dropped(1);
  await settle();
  expect(drops.isGoingOn).toBe(true);
  answerWith(() => TAKEN);
  await clock.advance(250);
  expect([queue.size, drops.isGoingOn]).toEqual([0, false]);
  await loop.stop(0);
  expect(log.lines).toMatchObject([{ fields: { dropped: 1 } }]);
});

test('an exporter that rejects against its contract loses nothing', async () => {
  const { clock, offer, answerWith, counters, loop } = startLoop();
  answerWith(() => Promise.reject(new Error('broken')));
  offer(3);
  await settle();
  expect(loop.health.outage).toMatchObject({ reason: 'exporter_error' });
  answerWith(() => TAKEN);
  await clock.advance(250);
  expect(counters.values).toMatchObject({ exported: 3, failedCalls: 1 });
});

describe('stopping', () => {
  test('sends what is queued without waiting for the interval', async () => {
    const { loop, offer, batches } = startLoop();
    await settle();
    offer(2);
    await loop.stop(5000);
    expect(batches).toEqual([[0, 1]]);
  });

  test('interrupts a back-off, however long the collector asked for', async () => {
    const { loop, offer, answerWith, counters } = startLoop();
    answerWith(() => ({ kind: 'answered', status: 503, retryAfterMs: 60_000 }));
    offer(5);
    await settle();
    answerWith(() => TAKEN);
    await loop.stop(5000);
    expect(counters.values).toMatchObject({ exported: 5, failedCalls: 1 });
  });

  test('retries until the deadline, and leaves the rest in the queue', async () => {
    const { clock, loop, offer, answerWith, counters, queue, batches } = startLoop();
    answerWith(() => UNAVAILABLE);
    offer(5);
    const stopped = loop.stop(5000);
    await clock.advance(4999);
    expect(batches.length).toBeGreaterThan(2);
    await clock.advance(1);
    await stopped;
    expect(queue.size).toBe(5);
    expect(counters.values.failedCalls).toBe(batches.length);
  });

  test('cuts the current call at the deadline', async () => {
    const { clock, loop, offer, answerWith, queue } = startLoop();
    answerWith(
      (_encodedSpans, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ kind: 'unanswered', code: 'aborted' }));
        }),
    );
    offer(3);
    const stopped = loop.stop(5000);
    await clock.advance(5000);
    await stopped;
    expect(queue.size).toBe(3);
  });

  test('ends at the deadline even if the exporter ignores the signal, and leaves the queue alone then', async () => {
    const { clock, loop, offer, answerWith, queue, counters } = startLoop();
    const held = Promise.withResolvers<ExportOutcome>();
    let heard: AbortSignal | undefined;
    answerWith((_encodedSpans, signal) => {
      heard = signal;
      return held.promise;
    });
    offer(3);
    const stopped = loop.stop(5000);
    await clock.advance(4999);
    expect(heard?.aborted).toBe(false);
    await clock.advance(1);
    await stopped;
    expect([heard?.aborted, queue.size]).toEqual([true, 3]);
    // Its caller has the records stored: they must not count a second time.
    held.resolve(TAKEN);
    await settle();
    expect([queue.size, counters.values.exported]).toEqual([3, 0]);
  });

  test('reads no more records of earlier runs', async () => {
    let reads = 0;
    const spool: Spool = {
      unreadableFiles: 0,
      async next() {
        reads++;
        return undefined;
      },
      put: async () => 0,
    };
    const { loop, offer } = startLoop({ spool });
    offer(7);
    await settle();
    const before = reads;
    await loop.stop(5000);
    expect([before > 0, reads]).toEqual([true, before]);
  });

  test('happens once, however often it is called', async () => {
    const { loop, offer, batches } = startLoop();
    offer(1);
    await Promise.all([loop.stop(5000), loop.stop(0)]);
    expect(batches).toEqual([[0]]);
  });
});

test('an outage of a day costs a bounded queue and one timer', async () => {
  const { clock, offer, answerWith, counters, queue } = startLoop({ capacity: 50 });
  answerWith(() => UNAVAILABLE);
  for (let minute = 0; minute < 24 * 60; minute += 1) {
    offer(10, 100);
    await clock.advance(60_000);
  }
  expect(queue).toMatchObject({ size: 50, bytes: 5000 });
  expect(counters.values).toMatchObject({ recorded: 14_400, dropped: 14_350, exported: 0, rejected: 0 });
  expect(clock.sleepsMs).toHaveLength(1);
  answerWith(() => TAKEN);
  await clock.advance(5000);
  expect(counters.values).toMatchObject({ exported: 50, dropped: 14_350 });
});

test('a collector that rejects everything is told until it takes a batch, and the end says how many it were', async () => {
  const { clock, offer, answerWith, log, loop } = startLoop();
  answerWith(() => ({ kind: 'answered', status: 401, message: 'no token' }));
  for (let second = 0; second < 90; second += 1) {
    offer(3);
    await clock.advance(1000);
  }
  expect(log.lines).toEqual([]);
  expect(loop.health.rejection).toMatchObject({ reason: 'http_401', rejected: 270, message: 'no token' });
  await loop.stop(0);
  expect(log.lines).toMatchObject([{ fields: { reason: 'http_401', rejected: 270 } }]);
});

test('each record ends in exactly one counter, and none is sent after that, whatever the collector does', async () => {
  const outcome: fc.Arbitrary<ExportOutcome> = fc.oneof(
    fc.record({ kind: fc.constant('taken' as const), rejectedCount: fc.integer({ min: -1, max: 9 }) }),
    fc.record({
      kind: fc.constant('answered' as const),
      status: fc.constantFrom(301, 400, 413, 429, 500, 503),
      retryAfterMs: fc.option(fc.nat(3000), { nil: undefined }),
    }),
    fc.constantFrom('ECONNRESET', 'ETIMEDOUT').map((code) => ({ kind: 'unanswered' as const, code })),
    fc.constant({ kind: 'oversized' as const }),
  );
  /** A call: the collector's answer, its latency, and how many records end meanwhile. */
  const call = fc.record({ outcome, latencyMs: fc.nat(2000), endingMeanwhile: fc.nat(8) });
  const burst = fc.record({ records: fc.nat(9), pauseMs: fc.nat(3000) });

  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { maxLength: 12 }),
      fc.array(burst, { maxLength: 6 }),
      fc.nat(4000),
      async (calls, bursts, deadlineMs) => {
        const { clock, queue, counters, loop, offer, answerWith, batches } = startLoop({ capacity: 10 });
        const accountFor = () =>
          counters.values.exported +
          counters.values.dropped +
          counters.values.rejected +
          queue.size +
          counters.values.spooled +
          counters.values.lost;
        const never = new AbortController().signal;
        const script = [...calls];
        answerWith(async () => {
          const next = script.shift();
          if (next === undefined) return TAKEN;
          offer(next.endingMeanwhile);
          await clock.sleep(next.latencyMs, never);
          return next.outcome;
        });
        for (const { records, pauseMs } of bursts) {
          offer(records);
          await clock.advance(pauseMs);
          expect(accountFor()).toBe(counters.values.recorded + counters.values.restored);
          expect(queue.size).toBeLessThanOrEqual(10);
        }
        const stopped = loop.stop(deadlineMs);
        await clock.advance(deadlineMs);
        await stopped;
        expect(accountFor()).toBe(counters.values.recorded + counters.values.restored);
        // A batch is repeated, whole or in parts, before anything else: the first records are in ascending order.
        const firsts = batches.map(([first = 0]) => first);
        expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
      },
    ),
  );
});
