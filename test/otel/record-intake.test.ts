import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DropLog } from '#otel/queue/drop-log.ts';
import { createExportCounters } from '#otel/queue/export-stats.ts';
import { RecordIntake } from '#otel/queue/record-intake.ts';
import { allocateLedger, RecordLedger } from '#otel/queue/record-ledger.ts';
import { RecordQueue } from '#otel/queue/record-queue.ts';
import { type PackedRecords, unpack, WorkerOutlet } from '#otel/queue/worker-outlet.ts';
import { EventLog } from '../support/event-log.ts';
import { createQuietLog } from './quiet-log.ts';
import { FULL_RECORD, LEAST_RECORD } from './records.ts';
import { VirtualClock } from './virtual-clock.ts';

/** A worker's outlet, whose messages wait until the test delivers them. */
interface TestWorker {
  readonly outlet: WorkerOutlet;
  readonly posted: EventLog<PackedRecords>;
}

/** The intake of the main thread and the outlets of workers, in one thread. */
function createIntake({ workerCount = 2, capacity = 4, capacityBytes = 1_000 } = {}) {
  const memory = allocateLedger(workerCount, { capacity, capacityBytes });
  const ledger = new RecordLedger(memory);
  const queue = new RecordQueue(ledger);
  const counters = createExportCounters();
  const log = createQuietLog();
  const lines: string[] = [];
  const intake = new RecordIntake({
    ...{ ledger, queue, counters },
    clock: new VirtualClock(),
    dropLog: new DropLog(queue, log),
    onLine: (line) => lines.push(Buffer.from(line).toString()),
    onQueued: () => undefined,
  });
  const startWorker = (worker: number): TestWorker => {
    const posted = new EventLog<PackedRecords>();
    const post = (records: PackedRecords) => posted.push(records);
    return { posted, outlet: new WorkerOutlet({ ledger: new RecordLedger(memory), worker, post }) };
  };
  const workers = Array.from({ length: workerCount }, (_, worker) => startWorker(worker));
  const workerOf = (worker: number): TestWorker => {
    const found = workers[worker];
    if (found === undefined) throw new RangeError(`worker ${worker}`);
    return found;
  };
  const deliver = (worker: number) => {
    for (const records of workerOf(worker).posted.items.splice(0)) intake.receive(worker, unpack(records));
  };
  return {
    ...{ intake, queue, counters, log, lines, deliver, workerOf },
    /** A request begins in a worker and ends at once. */
    record(worker: number, line: string) {
      const { outlet } = workerOf(worker);
      outlet.begin();
      outlet.put(Buffer.from(line));
      outlet.note(LEAST_RECORD);
    },
    /** All that a worker has ended comes to the main thread. */
    flush(worker: number) {
      workerOf(worker).outlet.flush();
      deliver(worker);
    },
    /** What was posted is delivered, as Node does; what was not is gone. Another worker takes its place. */
    kill(worker: number) {
      deliver(worker);
      intake.workerEnded(worker);
      workers[worker] = startWorker(worker);
    },
    queued: () => queue.peek(capacity).map(({ line }) => Buffer.from(line).toString()),
  };
}

/** The two sides that are always equal. */
function sidesOf({ intake }: ReturnType<typeof createIntake>) {
  const { recorded, restored, exported, dropped, rejected, queued, spooled, lost } = intake.stats();
  return { begun: recorded + restored, accounted: exported + dropped + rejected + queued + spooled + lost };
}

describe('a record of a worker', () => {
  test('is recorded and queued as soon as its request ends, also before it has come', () => {
    const { intake, record, flush, queued } = createIntake();
    record(0, 'a');
    record(1, 'b');
    expect(intake.stats()).toMatchObject({ recorded: 2, queued: 2 });
    expect(queued()).toEqual([]);
    flush(1);
    flush(0);
    expect(queued()).toEqual(['b', 'a']);
    expect(intake.stats()).toMatchObject({ recorded: 2, queued: 2 });
  });

  test('goes in one message with others that end about the same time', async () => {
    const { record, workerOf } = createIntake({ capacity: 9 });
    for (const line of ['a', 'bc', 'd']) record(0, line);
    const [message] = await workerOf(0).posted.count(1);
    expect(message).toMatchObject({ lengths: [1, 2, 1], queuedCount: 3 });
    record(0, 'e');
    await workerOf(0).posted.count(2);
  });

  test('waits for no others when there are many already', () => {
    const { record, workerOf } = createIntake({ capacity: 100 });
    for (let count = 0; count < 64; count += 1) record(0, 'a');
    expect(workerOf(0).posted.items).toHaveLength(1);
  });

  test('comes as it was for whoever looks at records, whether it was queued or dropped', () => {
    const { workerOf } = createIntake({ capacity: 1 });
    const { outlet, posted } = workerOf(0);
    for (const record of [FULL_RECORD, LEAST_RECORD]) {
      outlet.begin();
      outlet.put(Buffer.from('line'));
      outlet.note(record);
    }
    outlet.flush();
    const [message] = posted.items;
    expect(message === undefined ? null : unpack(message)).toMatchObject({
      queued: [new TextEncoder().encode('line')],
      dropped: [new TextEncoder().encode('line')],
      records: [FULL_RECORD, LEAST_RECORD],
    });
  });

  test('is dropped where the queue is full with those of all workers, and told of once', () => {
    const { intake, record, flush, log, lines } = createIntake({ capacity: 3 });
    for (const line of ['a', 'b']) record(0, line);
    for (const line of ['c', 'd', 'e']) record(1, line);
    expect(intake.stats()).toMatchObject({ recorded: 5, queued: 3, dropped: 2 });
    flush(0);
    flush(1);
    expect(intake.stats()).toMatchObject({ recorded: 5, queued: 3, dropped: 2 });
    expect(log.lines.map(({ message }) => message)).toEqual(['queue full: dropping records']);
    expect(lines).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('is dropped where all together are too heavy', () => {
    const { intake, record } = createIntake({ capacityBytes: 10 });
    record(0, 'a'.repeat(6));
    record(1, 'b'.repeat(6));
    record(1, 'c'.repeat(4));
    expect(intake.stats()).toMatchObject({ queued: 2, dropped: 1 });
  });

  test('has its place free again when it has left the queue', () => {
    const { record, flush, queue, intake } = createIntake({ capacity: 1 });
    record(0, 'a');
    flush(0);
    queue.remove(1);
    record(1, 'b');
    flush(1);
    expect(intake.stats()).toMatchObject({ dropped: 0, queued: 1 });
  });

  test('that cannot be encoded is rejected', () => {
    const { intake, workerOf } = createIntake();
    workerOf(0).outlet.begin();
    workerOf(0).outlet.refuse();
    expect(intake.stats()).toMatchObject({ recorded: 1, rejected: 1 });
  });

  test('leaves no room for those of an earlier run that it needs itself', () => {
    const { queue, record } = createIntake({ capacity: 3 });
    record(0, 'a');
    const restored = ['x', 'y', 'z'].map((word) => ({ line: Buffer.from(word), queuedAtMs: 0 }));
    expect(queue.prepend(restored)).toBe(2);
  });
});

describe('a worker that dies', () => {
  test('loses what it had begun and what it had not sent, and nothing else', () => {
    const { intake, workerOf, record, kill, queued } = createIntake({ capacity: 9 });
    for (const line of ['sent', 'too']) record(0, line);
    workerOf(0).outlet.flush();
    record(0, 'kept back');
    for (let open = 0; open < 3; open += 1) workerOf(0).outlet.begin();
    record(1, "another's");
    kill(0);
    expect(queued()).toEqual(['sent', 'too']);
    expect(intake.stats()).toMatchObject({ recorded: 7, lost: 4, queued: 3 });
  });

  test('gives its places back', () => {
    const { intake, record, kill, flush } = createIntake({ capacity: 2 });
    for (const line of ['a', 'b']) record(0, line);
    kill(0);
    for (const line of ['c', 'd']) record(1, line);
    flush(1);
    expect(intake.stats()).toMatchObject({ recorded: 4, lost: 2, queued: 2, dropped: 0 });
  });

  test('loses no request that was none', () => {
    const { intake, workerOf, kill } = createIntake();
    workerOf(0).outlet.begin();
    workerOf(0).outlet.discard();
    kill(0);
    expect(intake.stats()).toMatchObject({ recorded: 0, lost: 0 });
  });
});

test('whatever happens to requests, workers and the queue, every record is accounted for', () => {
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
    fc.record({ kind: fc.constant('refuse' as const), worker }),
    fc.record({ kind: fc.constant('discard' as const), worker }),
    fc.record({ kind: fc.constant('local' as const), worker }),
    fc.record({ kind: fc.constant('flush' as const), worker }),
    fc.record({ kind: fc.constant('kill' as const), worker }),
    fc.record({ kind: fc.constant('export' as const), worker }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const all = createIntake({ workerCount: 3, capacity: 5, capacityBytes: 30 });
      const { intake, queue, counters, workerOf, flush, kill } = all;
      const open = [0, 0, 0];
      let begun = 0;
      for (const { kind, worker: index, ...rest } of steps) {
        const { outlet } = workerOf(index);
        const isOpen = (open[index] ?? 0) > 0;
        if (kind === 'begin') {
          outlet.begin();
          open[index] = (open[index] ?? 0) + 1;
          begun += 1;
        } else if (kind === 'local') {
          intake.put(Buffer.from('local'));
          begun += 1;
        } else if (kind === 'flush') flush(index);
        else if (kind === 'kill') {
          kill(index);
          open[index] = 0;
        } else if (kind === 'export') {
          counters.exported += Math.min(queue.size, 2);
          queue.remove(2);
        } else if (isOpen) {
          open[index] = (open[index] ?? 0) - 1;
          if (kind === 'end' && 'bytes' in rest) {
            outlet.put(Buffer.alloc(rest.bytes));
            outlet.note(LEAST_RECORD);
          } else if (kind === 'refuse') outlet.refuse();
          else {
            outlet.discard();
            begun -= 1;
          }
        }
        const sides = sidesOf(all);
        expect(sides.begun).toBe(sides.accounted);
        expect(intake.stats().queued).toBeLessThanOrEqual(5);
        // What is still open is not recorded yet.
        expect(sides.begun).toBe(begun - open.reduce((sum, count) => sum + count, 0));
      }
    }),
  );
});
