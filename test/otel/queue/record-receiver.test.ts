import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { NO_LEDGER } from '#otel/ledger';
import { decodeRecord } from '#otel/otlp';
import { allocateSharedQueue, SharedQueueState } from '#otel/queue/shared';
import type { RequestRecord } from '#otel/record/registry';
import { EventLog } from '#testkit/event-log.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import { Drops } from '../../../otel/queue/drops.ts';
import { ExportCounters } from '../../../otel/queue/export-stats.ts';
import type { EndedRecord, RecordConsumer } from '../../../otel/queue/record-consumer.ts';
import { RecordQueue } from '../../../otel/queue/record-queue.ts';
import { RecordReceiver } from '../../../otel/queue/record-receiver.ts';
import {
  type PackedRecords,
  unpackRecords,
  WorkerRecordSender,
} from '../../../otel/queue/worker-record-sender.ts';

/** The sender of a worker, whose messages wait until the test delivers them. */
interface TestWorker {
  readonly sender: WorkerRecordSender;
  readonly posted: EventLog<PackedRecords>;
}

afterEach(() => vi.restoreAllMocks());

/** Encoded spans by their texts. */
const encoded = new Map<string, Uint8Array>();

/** A record with this text, as its tenant. */
function ended(text: string, fields = LEAST_RECORD): EndedRecord & { readonly encodedSpan: Uint8Array } {
  const record = { ...fields, tenant: text };
  const key = JSON.stringify(record);
  const encodedSpan = encoded.get(key) ?? encodeRecord(record);
  encoded.set(key, encodedSpan);
  return { record, encodedSpan };
}

const textOf = (encodedSpan: Uint8Array) => decodeRecord(encodedSpan)?.tenant ?? '';

/** The bytes of the records with these texts. */
const bytesOf = (...texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + ended(text).encodedSpan.length, 0);

/** The receiver of the main thread and the senders of workers, in one thread. */
function createReceiver({ workerCount = 2, capacity = 4, capacityBytes = 1_000_000 } = {}) {
  const memory = allocateSharedQueue(workerCount, { capacity, capacityBytes });
  const queueState = new SharedQueueState(memory);
  const queue = new RecordQueue(queueState);
  const counters = new ExportCounters();
  const log = createQuietLog();
  const observed: { readonly record: object; readonly text: string | null }[] = [];
  /** What the ledger is told of workers that have ended. */
  const begunByEnded: number[] = [];
  /** What the ledger is told of records: their text, or why there is none in the queue. */
  const ledgerLines: string[] = [];
  let queuedCalls = 0;
  const drops = new Drops(queue, log);
  const receiver = new RecordReceiver({
    queueState,
    queue,
    counters,
    clock: new VirtualClock(),
    drops,
    onRecord({ record, encodedSpan }) {
      observed.push({ record, text: encodedSpan && textOf(encodedSpan) });
    },
    onQueued: () => queuedCalls++,
    instance: 'run',
    ledger: {
      ...NO_LEDGER,
      queued: (_, encodedSpan) => ledgerLines.push(textOf(encodedSpan)),
      notQueued: (_, why) => ledgerLines.push(why),
      instanceEnded: (_, begun) => void begunByEnded.push(begun),
    },
  });
  const startWorker = (worker: number): TestWorker => {
    const posted = new EventLog<PackedRecords>();
    const post = (records: PackedRecords) => posted.push(records);
    const workerState = new SharedQueueState(memory);
    const instance = receiver.workerStarted(worker);
    return { posted, sender: new WorkerRecordSender({ queueState: workerState, worker, instance, post }) };
  };
  const workers = Array.from({ length: workerCount }, (_, worker) => startWorker(worker));
  const workerOf = (worker: number): TestWorker => {
    const found = workers[worker];
    if (found === undefined) throw new RangeError(`worker ${worker}`);
    return found;
  };
  const deliver = (worker: number) => {
    for (const records of workerOf(worker).posted.items.splice(0)) receiver.receive(worker, records);
  };
  return {
    receiver,
    queue,
    counters,
    log,
    drops,
    observed,
    begunByEnded,
    ledgerLines,
    deliver,
    workerOf,
    queuedCalls: () => queuedCalls,
    /** A request begins in a worker and ends at once. */
    record(worker: number, text: string, record = LEAST_RECORD) {
      const { sender } = workerOf(worker);
      sender.begin();
      sender.consume(ended(text, record));
    },
    /** All records that have ended in a worker arrive in the main thread. */
    flush(worker: number) {
      workerOf(worker).sender.flush();
      deliver(worker);
    },
    /** What was posted is delivered, as Node does it. The rest is lost. Another worker replaces this one. */
    kill(worker: number) {
      deliver(worker);
      receiver.workerEnded(worker);
      workers[worker] = startWorker(worker);
    },
    queued: () => queue.peek(capacity).map(({ encodedSpan }) => textOf(encodedSpan)),
  };
}

/** The two sides that are always equal. */
function sidesOf({ receiver }: ReturnType<typeof createReceiver>) {
  const { recorded, restored, exported, dropped, rejected, queued, spooled, lost } = receiver.stats();
  return { begun: recorded + restored, accounted: exported + dropped + rejected + queued + spooled + lost };
}

describe('a record of the main thread', () => {
  test('is queued, dropped or rejected, of which the ledger and the observers are told', () => {
    const { receiver, ledgerLines, observed, queuedCalls, drops } = createReceiver({ capacity: 1 });
    for (const record of [ended('a'), ended('b'), { record: LEAST_RECORD, encodedSpan: null }])
      receiver.consume(record);
    expect(ledgerLines).toEqual(['a', 'dropped', 'unencodable']);
    expect(observed.map(({ text }) => text)).toEqual(['a', 'b', null]);
    expect(queuedCalls()).toBe(1);
    expect(receiver.stats()).toMatchObject({ recorded: 3, queued: 1, dropped: 1, rejected: 1 });
    expect([drops.isGoingOn, drops.count]).toEqual([true, 1]);
  });
});

test('records are numbered from 1 in each thread, whose name no other thread has, also after a worker has ended', () => {
  const { receiver, workerOf, kill } = createReceiver();
  const numberTwice = (consumer: Pick<RecordConsumer, 'number'>) =>
    [0, 1].map(() => {
      const record: RequestRecord = { ...LEAST_RECORD };
      consumer.number(record);
      return [record.instance, record.seq];
    });
  const numbersOf = (instance: string) => [
    [instance, 1],
    [instance, 2],
  ];
  expect(numberTwice(receiver)).toEqual(numbersOf('run'));
  expect(numberTwice(workerOf(0).sender)).toEqual(numbersOf('run.1'));
  expect(numberTwice(workerOf(1).sender)).toEqual(numbersOf('run.2'));
  kill(0);
  expect(numberTwice(workerOf(0).sender)).toEqual(numbersOf('run.3'));
});

describe('a record of a worker', () => {
  test('is told to the ledger when it arrives, as what became of it', () => {
    const { workerOf, record, flush, ledgerLines, queuedCalls, counters } = createReceiver({ capacity: 1 });
    record(0, 'a');
    workerOf(0).sender.begin();
    workerOf(0).sender.consume({ record: LEAST_RECORD, encodedSpan: null });
    record(0, 'b');
    expect(ledgerLines).toEqual([]);
    flush(0);
    expect(ledgerLines).toEqual(['a', 'unencodable', 'dropped']);
    expect(queuedCalls()).toBe(1);
    // Though nobody has asked for them.
    expect(counters.values).toMatchObject({ recorded: 3, dropped: 1, rejected: 1 });
  });

  test('is sent once, and leaves no timer behind', () => {
    vi.useFakeTimers();
    try {
      const { workerOf, record, deliver, queued } = createReceiver({ capacity: 9 });
      const { sender, posted } = workerOf(0);
      record(0, 'a');
      vi.advanceTimersByTime(4);
      sender.flush();
      sender.flush();
      expect(posted.items).toHaveLength(1);
      record(0, 'b');
      // When the timer of the first would have been over.
      vi.advanceTimersByTime(4);
      expect(posted.items).toHaveLength(1);
      vi.advanceTimersByTime(1);
      expect(posted.items).toHaveLength(2);
      deliver(0);
      expect(queued()).toEqual(['a', 'b']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('needs no place among those without a reservation, however many there were', () => {
    const { record, flush, receiver, queue } = createReceiver();
    for (let count = 0; count < 4100; count += 1) {
      record(0, 'a');
      if (count % 4 === 3) {
        flush(0);
        queue.remove(4);
      }
    }
    expect(receiver.stats()).toMatchObject({ recorded: 4100, dropped: 0 });
  });

  test('that was dropped or could not be encoded is not sent when 4,096 of them are on their way', () => {
    const { record, receiver, workerOf, flush, observed } = createReceiver({ capacity: 1 });
    record(0, 'queued');
    const unencodable = () => workerOf(0).sender.consume({ record: LEAST_RECORD, encodedSpan: null });
    for (let round = 0; round < 2; round++) {
      observed.length = 0;
      for (let count = 0; count < 100; count += 1) unencodable();
      for (let count = 0; count < 4000; count += 1) record(0, 'dropped');
      flush(0);
      expect(observed).toHaveLength(round === 0 ? 4097 : 4096);
    }
    expect(receiver.stats()).toMatchObject({ dropped: 8000, rejected: 200 });
  });

  test('counts as recorded and queued as soon as its request ends, also before it has arrived', () => {
    const { receiver, record, flush, queued } = createReceiver();
    record(0, 'a');
    record(1, 'b');
    expect(receiver.stats()).toMatchObject({ recorded: 2, queued: 2 });
    expect(queued()).toEqual([]);
    flush(1);
    flush(0);
    expect(queued()).toEqual(['b', 'a']);
    expect(receiver.stats()).toMatchObject({ recorded: 2, queued: 2 });
  });

  test('is sent in one message with others that end at about the same time', async () => {
    const { record, workerOf } = createReceiver({ capacity: 9 });
    for (const text of ['a', 'bc', 'd']) record(0, text);
    const [message] = await workerOf(0).posted.count(1);
    expect(message && unpackRecords(message)).toHaveLength(3);
    record(0, 'e');
    await workerOf(0).posted.count(2);
  });

  test('does not wait for others when there are many already', () => {
    const { record, workerOf } = createReceiver({ capacity: 100 });
    for (let count = 0; count < 64; count += 1) record(0, 'a');
    expect(workerOf(0).posted.items).toHaveLength(1);
  });

  test('arrives together with its encoded span, whether it was queued or dropped, in the order of the ends', () => {
    const capacityBytes = ended('full', FULL_RECORD).encodedSpan.length + bytesOf('least') + 1;
    const { record, flush, observed, queued } = createReceiver({ capacity: 2, capacityBytes });
    record(0, 'full', FULL_RECORD);
    record(0, 'too heavy', LEAST_RECORD);
    record(0, 'least', LEAST_RECORD);
    flush(0);
    expect(observed).toEqual([
      { record: { ...FULL_RECORD, tenant: 'full' }, text: 'full' },
      { record: { ...LEAST_RECORD, tenant: 'too heavy' }, text: 'too heavy' },
      { record: { ...LEAST_RECORD, tenant: 'least' }, text: 'least' },
    ]);
    expect(queued()).toEqual(['full', 'least']);
  });

  test('is dropped when the records of all workers fill the queue, and each is counted once', () => {
    const { receiver, record, flush, drops, observed } = createReceiver({ capacity: 3 });
    for (const text of ['a', 'b']) record(0, text);
    for (const text of ['c', 'd', 'e']) record(1, text);
    expect(receiver.stats()).toMatchObject({ recorded: 5, queued: 3, dropped: 2 });
    flush(0);
    flush(1);
    expect(receiver.stats()).toMatchObject({ recorded: 5, queued: 3, dropped: 2 });
    expect(drops.count).toBe(2);
    expect(observed.map(({ text }) => text)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('is dropped when all records together are too large', () => {
    const capacityBytes = bytesOf('a'.repeat(6), 'c'.repeat(4));
    const { receiver, record } = createReceiver({ capacityBytes });
    record(0, 'a'.repeat(6));
    record(1, 'b'.repeat(6));
    record(1, 'c'.repeat(4));
    expect(receiver.stats()).toMatchObject({ queued: 2, dropped: 1 });
  });

  test('releases its reservation when it has left the queue', () => {
    const { record, flush, queue, receiver } = createReceiver({ capacity: 1 });
    record(0, 'a');
    flush(0);
    queue.remove(1);
    record(1, 'b');
    flush(1);
    expect(receiver.stats()).toMatchObject({ dropped: 0, queued: 1 });
  });

  test('that cannot be encoded arrives once, in whichever message it is', () => {
    const { workerOf, flush, observed } = createReceiver();
    for (const record of [LEAST_RECORD, FULL_RECORD]) {
      workerOf(0).sender.consume({ record, encodedSpan: null });
      flush(0);
    }
    expect(observed.map(({ record }) => record)).toEqual([LEAST_RECORD, FULL_RECORD]);
  });

  test('that is none is an error of the worker', () => {
    expect(() => unpackRecords({ bytes: Uint8Array.of(1, 2), lengths: [2], unencodable: [] })).toThrow(
      'no record',
    );
  });

  test('that cannot be encoded is rejected, and observed', () => {
    const { receiver, workerOf, flush, observed } = createReceiver();
    workerOf(0).sender.begin();
    workerOf(0).sender.consume({ record: LEAST_RECORD, encodedSpan: null });
    expect(receiver.stats()).toMatchObject({ recorded: 1, rejected: 1 });
    flush(0);
    expect(observed).toEqual([{ record: LEAST_RECORD, text: null }]);
  });

  test('keeps its reservation when records of an earlier run are restored', () => {
    const { queue, record } = createReceiver({ capacity: 3 });
    record(0, 'a');
    const restored = ['x', 'y', 'z'].map((word) => ({ encodedSpan: Buffer.from(word), queuedAtMs: 0 }));
    expect(queue.prepend(restored)).toBe(2);
  });
});

describe('a worker that dies', () => {
  test('is told to the ledger with what it had begun, and to the caller with what it has lost', () => {
    const { receiver, workerOf, begunByEnded } = createReceiver();
    for (let open = 0; open < 2; open++) workerOf(0).sender.begin();
    workerOf(0).sender.consume({ record: LEAST_RECORD, encodedSpan: null });
    expect(receiver.workerEnded(0)).toBe(1);
    expect(begunByEnded).toEqual([2]);
  });

  test('loses the records of requests that had not ended and those that it had not sent, and no others', () => {
    const { receiver, workerOf, record, kill, queued } = createReceiver({ capacity: 9 });
    for (const text of ['sent', 'too']) record(0, text);
    workerOf(0).sender.flush();
    record(0, 'kept back');
    for (let open = 0; open < 3; open += 1) workerOf(0).sender.begin();
    record(1, "another's");
    kill(0);
    expect(queued()).toEqual(['sent', 'too']);
    expect(receiver.stats()).toMatchObject({ recorded: 7, lost: 4, queued: 3 });
  });

  test('releases its reservations', () => {
    const { receiver, record, kill, flush } = createReceiver({ capacity: 2 });
    for (const text of ['a', 'b']) record(0, text);
    kill(0);
    for (const text of ['c', 'd']) record(1, text);
    flush(1);
    expect(receiver.stats()).toMatchObject({ recorded: 4, lost: 2, queued: 2, dropped: 0 });
  });

  test('loses nothing for a request that leaves no record', () => {
    const { receiver, workerOf, kill } = createReceiver();
    workerOf(0).sender.begin();
    workerOf(0).sender.discard();
    kill(0);
    expect(receiver.stats()).toMatchObject({ recorded: 0, lost: 0 });
  });
});

/** A worker ends at one of its writes to shared memory, before or after it: V8 ends a thread wherever it calls a function. */
describe.each(['before', 'after'] as const)('a worker that is killed %s a write of a request', (side) => {
  const requests = {
    'that is queued': { end: ended('abc'), capacity: 9 },
    'that has no place': { end: ended('abc'), capacity: 2 },
    'that cannot be encoded': { end: { record: LEAST_RECORD, encodedSpan: null }, capacity: 9 },
  };
  test.each(Object.entries(requests))('%s counts its record once', (_, { end, capacity }) => {
    const begunAt = [];
    for (let write = 1; ; write += 1) {
      const { receiver, workerOf, record, kill, begunByEnded, flush } = createReceiver({ capacity });
      for (const text of ['one', 'two']) record(0, text);
      flush(0);
      const isKilled = isKilledAt(write, side, () => {
        const { sender } = workerOf(0);
        sender.begin();
        sender.number({ ...end.record });
        sender.consume(end);
      });
      kill(0);
      if (!isKilled) break;
      const { recorded, lost, dropped, rejected, queued } = receiver.stats();
      const begun = begunByEnded[0] ?? 0;
      begunAt.push(begun);
      expect({ recorded, queued, gone: lost + dropped + rejected }).toEqual({
        recorded: begun,
        queued: 2,
        gone: begun - 2,
      });
    }
    expect(begunAt[0]).toBe(side === 'before' ? 2 : 3);
    expect(begunAt.slice(1)).toSatisfy(
      (all: number[]) => all.length > 0 && all.every((begun) => begun === 3),
    );
  });
});

/** Runs what a worker does, until its write `nth` to shared memory. Returns whether it came to that. */
function isKilledAt(nth: number, side: 'before' | 'after', run: () => void): boolean {
  const killed = new Error('killed');
  const add = Atomics.add;
  let writes = 0;
  const spy = vi.spyOn(Atomics, 'add').mockImplementation((...at: Parameters<typeof add>) => {
    writes += 1;
    if (writes === nth && side === 'before') throw killed;
    const before = add(...at);
    if (writes === nth) throw killed;
    return before;
  });
  try {
    run();
    return false;
  } catch (error) {
    if (error !== killed) throw error;
    return true;
  } finally {
    spy.mockRestore();
  }
}

test('every record is accounted for, whatever happens to requests, workers and the queue', () => {
  const worker = fc.nat(2);
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('begin' as const), worker }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        worker,
        bytes: fc.integer({ min: 1, max: 9 }),
      }),
    },
    fc.record({ kind: fc.constant('unencodable' as const), worker }),
    fc.record({ kind: fc.constant('discard' as const), worker }),
    fc.record({ kind: fc.constant('local' as const), worker }),
    fc.record({ kind: fc.constant('flush' as const), worker }),
    fc.record({ kind: fc.constant('kill' as const), worker }),
    fc.record({ kind: fc.constant('export' as const), worker }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const all = createReceiver({ workerCount: 3, capacity: 5, capacityBytes: 5 * bytesOf('12345') });
      const { receiver, queue, counters, workerOf, flush, kill } = all;
      const open = [0, 0, 0];
      let begun = 0;
      for (const { kind, worker: index, ...rest } of steps) {
        const { sender } = workerOf(index);
        const isOpen = (open[index] ?? 0) > 0;
        if (kind === 'begin') {
          sender.begin();
          open[index] = (open[index] ?? 0) + 1;
          begun += 1;
        } else if (kind === 'local') {
          receiver.consume(ended('local'));
          begun += 1;
        } else if (kind === 'flush') flush(index);
        else if (kind === 'kill') {
          kill(index);
          open[index] = 0;
        } else if (kind === 'export') {
          counters.add('exported', Math.min(queue.size, 2));
          queue.remove(2);
        } else if (isOpen) {
          open[index] = (open[index] ?? 0) - 1;
          if (kind === 'end' && 'bytes' in rest) {
            sender.consume(ended('x'.repeat(rest.bytes)));
          } else if (kind === 'unencodable') sender.consume({ record: LEAST_RECORD, encodedSpan: null });
          else {
            sender.discard();
            begun -= 1;
          }
        }
        const sides = sidesOf(all);
        expect(sides.begun).toBe(sides.accounted);
        expect(receiver.stats().queued).toBeLessThanOrEqual(5);
        // What is still open is not recorded yet.
        expect(sides.begun).toBe(begun - open.reduce((sum, count) => sum + count, 0));
      }
    }),
  );
});
