import type { Clock } from '../clock.ts';
import type { DropLog } from './drop-log.ts';
import type { ExportCounters, ExportStats } from './export-stats.ts';
import type { RecordLedger } from './record-ledger.ts';
import type { RecordOutlet } from './record-outlet.ts';
import type { RecordQueue } from './record-queue.ts';

/** What comes from a worker in one message, as encoded spans. */
export interface WorkerRecords {
  /** They have taken their places in the queue. */
  readonly queued: readonly Uint8Array[];
  /** The queue was full; whoever looks at all records sees them all the same. */
  readonly dropped: readonly Uint8Array[];
}

/** What the intake fills, and whom it tells. */
export interface RecordIntakeCollaborators {
  readonly ledger: RecordLedger;
  readonly queue: RecordQueue;
  readonly counters: ExportCounters;
  readonly clock: Clock;
  readonly dropLog: DropLog;
  /** Called with the line of every record, before it is queued or dropped. */
  readonly onLine: (line: Uint8Array) => void;
  /** Called when a record was queued. */
  readonly onQueued: () => void;
}

/**
 * Where records enter the queue, from this thread or from workers, and where each is counted. Whatever is added to
 * `recorded` is added to one other counter in the same step, or is in the queue or on its way to it: that is why
 * the sum always holds.
 */
export class RecordIntake implements RecordOutlet {
  readonly #with: RecordIntakeCollaborators;

  constructor(collaborators: RecordIntakeCollaborators) {
    this.#with = collaborators;
  }

  /** What has begun in this thread cannot be lost without it. */
  begin(): void {}

  discard(): void {}

  put(line: Uint8Array): void {
    const { queue, counters, clock, dropLog, onLine, onQueued } = this.#with;
    counters.recorded += 1;
    onLine(line);
    if (queue.offer({ line, queuedAtMs: clock.nowMs() })) onQueued();
    else {
      counters.dropped += 1;
      dropLog.dropped(1);
    }
  }

  refuse(): void {
    const { counters } = this.#with;
    counters.recorded += 1;
    counters.rejected += 1;
  }

  /** Takes in what a worker has sent. */
  receive(worker: number, { queued, dropped }: WorkerRecords): void {
    const { ledger, queue, counters, clock, onLine, onQueued } = this.#with;
    const queuedAtMs = clock.nowMs();
    for (const line of queued) {
      counters.recorded += 1;
      onLine(line);
      queue.admit(worker, { line, queuedAtMs });
      onQueued();
    }
    for (const line of dropped) onLine(line);
    ledger.arriveUnqueued(worker, dropped.length);
    this.#takeCounts();
  }

  /** A worker has ended: what it had begun or sent and did not arrive is lost. Returns how many records those are. */
  workerEnded(worker: number): number {
    const { ledger, counters } = this.#with;
    this.#takeCounts();
    const lost = ledger.clear(worker);
    counters.recorded += lost;
    counters.lost += lost;
    return lost;
  }

  /** The counters now. */
  stats(): ExportStats {
    const { ledger, queue, counters } = this.#with;
    this.#takeCounts();
    const inTransit = ledger.inTransit();
    return { ...counters, recorded: counters.recorded + inTransit, queued: queue.size + inTransit };
  }

  #takeCounts(): void {
    const { ledger, counters, dropLog } = this.#with;
    const { dropped, unencodable } = ledger.takeCounts();
    counters.recorded += dropped + unencodable;
    counters.dropped += dropped;
    counters.rejected += unencodable;
    dropLog.dropped(dropped);
  }
}
