import type { Clock } from '#otel/base';
import type { RecordLedger } from '#otel/ledger';
import type { SharedQueueState } from '#otel/queue/shared';
import type { RequestRecord } from '#otel/record/registry';
import type { Drops } from './drops.ts';
import type { ExportCounters, ExportStats } from './export-stats.ts';
import type { EndedRecord, RecordConsumer } from './record-consumer.ts';
import type { RecordQueue } from './record-queue.ts';
import { type PackedRecords, unpackRecords } from './worker-record-sender.ts';

/** What the receiver works with. */
export interface RecordReceiverCollaborators {
  readonly queueState: SharedQueueState;
  readonly queue: RecordQueue;
  readonly counters: ExportCounters;
  readonly clock: Clock;
  readonly drops: Drops;
  /** Called with every record after it was queued or dropped. The encoded span is valid until the call returns. */
  readonly onRecord: (ended: EndedRecord) => void;
  /** Called after a record was queued. */
  readonly onQueued: () => void;
  readonly ledger: RecordLedger;
  /** The `instance` of this thread's own records. Those of workers begin with it. */
  readonly instance: string;
}

/**
 * Receives the records of this thread and of workers, counts each of them, and queues it. The sum of the counters always
 * holds: each record that adds to `recorded` adds to one other counter in the same step, or is in the queue, or in
 * transit to it.
 */
export class RecordReceiver implements RecordConsumer {
  readonly #collaborators: RecordReceiverCollaborators;
  #lastSeq = 0;
  #startedWorkers = 0;
  /** The `instance` of each worker that runs. */
  readonly #workerInstances: string[] = [];

  constructor(collaborators: RecordReceiverCollaborators) {
    this.#collaborators = collaborators;
  }

  /** A request of this thread cannot be lost while the thread lives: it is counted when it ends. */
  begin(): void {}

  discard(): void {}

  number(record: RequestRecord): void {
    record.instance = this.#collaborators.instance;
    record.seq = ++this.#lastSeq;
  }

  consume(ended: EndedRecord): void {
    const { queue, counters, clock, drops, ledger, onRecord, onQueued } = this.#collaborators;
    const { record, encodedSpan } = ended;
    counters.add('recorded');
    if (encodedSpan === null) {
      counters.add('rejected');
      ledger.notQueued(record, 'unencodable');
    } else if (queue.offer({ encodedSpan, queuedAtMs: clock.nowMs() })) {
      ledger.queued(record, encodedSpan);
      onQueued();
    } else {
      counters.add('dropped');
      drops.dropped(1);
      ledger.notQueued(record, 'dropped');
    }
    onRecord(ended);
  }

  /** Receives what a worker has sent. */
  receive(worker: number, packed: PackedRecords): void {
    const queuedAtMs = this.#collaborators.clock.nowMs();
    for (const sent of unpackRecords(packed)) this.#receiveOne(worker, sent, queuedAtMs);
    this.#addUnqueuedCounts();
  }

  /** A worker begins. Returns the `instance` of its records: no two threads share one. */
  workerStarted(worker: number): string {
    const instance = `${this.#collaborators.instance}.${++this.#startedWorkers}`;
    this.#workerInstances[worker] = instance;
    return instance;
  }

  /** A worker has ended. The records of its open requests, and those that have not arrived, are lost. Returns how many. */
  workerEnded(worker: number): number {
    const { queueState, counters, ledger } = this.#collaborators;
    this.#addUnqueuedCounts();
    const { begun, lost } = queueState.clearWorker(worker);
    const instance = this.#workerInstances[worker];
    if (instance !== undefined) ledger.instanceEnded(instance, begun);
    counters.add('recorded', lost);
    counters.add('lost', lost);
    return lost;
  }

  /** The counters now. */
  stats(): ExportStats {
    const { queueState, queue, counters } = this.#collaborators;
    this.#addUnqueuedCounts();
    const inTransit = queueState.inTransit();
    const { values } = counters;
    return { ...values, recorded: values.recorded + inTransit, queued: queue.size + inTransit };
  }

  #receiveOne(
    worker: number,
    { record, encodedSpan, isQueued }: ReturnType<typeof unpackRecords>[number],
    queuedAtMs: number,
  ): void {
    const { queueState, queue, counters, ledger, onRecord, onQueued } = this.#collaborators;
    if (isQueued && encodedSpan !== null) {
      counters.add('recorded');
      queue.admit(worker, { encodedSpan, queuedAtMs });
      ledger.queued(record, encodedSpan);
      onQueued();
    } else {
      queueState.endUnqueued(worker);
      ledger.notQueued(record, encodedSpan === null ? 'unencodable' : 'dropped');
    }
    onRecord({ record, encodedSpan });
  }

  #addUnqueuedCounts(): void {
    const { queueState, counters, drops } = this.#collaborators;
    const { dropped, unencodable } = queueState.takeUnqueuedCounts();
    counters.add('recorded', dropped + unencodable);
    counters.add('dropped', dropped);
    counters.add('rejected', unencodable);
    drops.dropped(dropped);
  }
}
