import type { Clock } from '../clock.ts';
import { ExportLog } from '../export/export-log.ts';
import {
  decideExport,
  type ExportBatch,
  type ExportDecision,
  type ExportOutcome,
} from '../export/export-outcome.ts';
import { nextDelayMs } from '../export/retry.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import type { Backlog } from './backlog.ts';
import { BatchLimit } from './batch-limit.ts';
import type { DropLog } from './drop-log.ts';
import type { ExportCounters } from './export-stats.ts';
import type { QueuedRecord, RecordQueue } from './record-queue.ts';

/** A connection cut this often in a row, with the same batch, takes the batch for too large. */
const CUTS_BEFORE_SPLIT = 2;

/** When batches leave and how failures are repeated; times in milliseconds. */
export interface DrainLoopSettings {
  readonly batchSize: number;
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
}

/** What the loop works on and with. */
export interface DrainLoopCollaborators {
  readonly queue: RecordQueue;
  readonly backlog: Backlog;
  readonly counters: ExportCounters;
  readonly exportBatch: ExportBatch;
  readonly clock: Clock;
  readonly log: TelemetryLog;
  readonly dropLog: DropLog;
  readonly random: () => number;
}

/**
 * The one loop that empties the queue: one export at a time, each batch again and again until the collector has
 * taken or refused it. A batch leaves when it is full or `intervalMs` after its first record came; it is full
 * with `batchSize` records, or with as many bytes as the collector takes.
 */
export class DrainLoop {
  readonly #settings: DrainLoopSettings;
  readonly #with: DrainLoopCollaborators;
  readonly #exportLog: ExportLog;
  readonly #limit = new BatchLimit();
  /** Aborted when there may be a reason to send before the sleep for the interval is over. */
  #notified = new AbortController();
  /** Aborted when shutdown begins: nothing waits for its interval or its back-off any more. */
  readonly #stopping = new AbortController();
  /** Aborted when shutdown's deadline has come: the call under way is cut. */
  readonly #cut = new AbortController();
  readonly #running: Promise<void>;
  #stopped: Promise<void> | undefined;
  /** Set when `stop` has resolved: what is in the queue then belongs to whoever stopped the loop. */
  #isOver = false;
  /** Failed calls since the last that did not fail. */
  #failures = 0;
  /** How many records at the head of the queue have waited: what is left of a batch that was split. */
  #overdue = 0;
  #exportingCount = 0;

  constructor(settings: DrainLoopSettings, collaborators: DrainLoopCollaborators) {
    this.#settings = settings;
    this.#with = collaborators;
    this.#exportLog = new ExportLog(collaborators.log, collaborators.clock);
    this.#running = this.#run();
  }

  /** How many records the call under way carries, its repeats and the waits between them included. */
  get exportingCount(): number {
    return this.#exportingCount;
  }

  /** Tells the loop that a record was queued. Cheap: it is called for every record. */
  notify(): void {
    // While a full batch waits, every record comes by here: an abort makes an exception, even the second time.
    if (this.#notified.signal.aborted) return;
    if (this.#with.queue.size === 1 || this.#isBatchFull()) this.#notified.abort();
  }

  /** Sends what is queued, at most until the deadline; what is left stays in the queue. Idempotent. */
  stop(deadlineMs: number): Promise<void> {
    this.#stopped ??= this.#finish(deadlineMs);
    return this.#stopped;
  }

  async #finish(deadlineMs: number): Promise<void> {
    const finished = new AbortController();
    const deadline = this.#with.clock.sleep(deadlineMs, finished.signal).then(() => this.#cut.abort());
    this.#stopping.abort();
    this.#notified.abort();
    // The deadline holds even for a write that heeds no signal: a file system that hangs, for one.
    await Promise.race([this.#running, deadline]);
    finished.abort();
    this.#isOver = true;
    this.#exportLog.end();
    this.#with.dropLog.end();
  }

  async #run(): Promise<void> {
    while (!this.#cut.signal.aborted) {
      // At the end, records of an earlier run are safest where they are.
      if (!this.#stopping.signal.aborted) await this.#with.backlog.refill();
      await this.#untilBatchIsDue();
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      this.#exportingCount = batch.length;
      await this.#deliver(batch);
      this.#exportingCount = 0;
    }
  }

  /** Records of an earlier run go by themselves: their file is removed as soon as they are settled. */
  #nextBatch(): readonly QueuedRecord[] {
    const { queue, backlog } = this.#with;
    const { batchSize } = this.#settings;
    const maxCount = backlog.atHead > 0 ? Math.min(batchSize, backlog.atHead) : batchSize;
    return queue.peek(maxCount, this.#limit.bytes);
  }

  #isBatchFull(): boolean {
    const { queue } = this.#with;
    return queue.size >= this.#settings.batchSize || queue.bytes >= this.#limit.bytes;
  }

  /** Comes back with an empty queue only when stopping. */
  async #untilBatchIsDue(): Promise<void> {
    const { queue, clock } = this.#with;
    while (!this.#stopping.signal.aborted && this.#overdue === 0 && !this.#isBatchFull()) {
      const [first] = queue.peek(1);
      const waitMs =
        first === undefined
          ? Number.POSITIVE_INFINITY
          : first.queuedAtMs + this.#settings.intervalMs - clock.nowMs();
      if (waitMs <= 0) return;
      this.#notified = new AbortController();
      await clock.sleep(waitMs, this.#notified.signal);
    }
  }

  /** Sends a batch until it is settled, or until it has to be sent in parts. */
  async #deliver(batch: readonly QueuedRecord[]): Promise<void> {
    const lines = batch.map(({ line }) => line);
    let cuts = 0;
    while (!this.#cut.signal.aborted) {
      const outcome = await this.#attempt(lines);
      if (this.#isOver) return;
      const decision = decideExport(outcome, lines.length);
      if (decision.action !== 'retry') {
        await this.#settle(decision, lines);
        return;
      }
      cuts = decision.mayBeTooLarge === true ? cuts + 1 : 0;
      await this.#backOff(decision);
      if (cuts >= CUTS_BEFORE_SPLIT && lines.length > 1) {
        this.#overdue = Math.max(this.#overdue, lines.length);
        this.#limit.suspect(sizeOf(lines));
        return;
      }
    }
  }

  async #attempt(lines: readonly Uint8Array[]): Promise<ExportOutcome> {
    try {
      return await this.#with.exportBatch(lines, this.#cut.signal);
    } catch {
      // An exporter never rejects; if one does, its batch is not lost and the loop goes on.
      return { kind: 'unanswered', code: 'exporter_error' };
    }
  }

  async #backOff({ reason, retryAfterMs }: Extract<ExportDecision, { action: 'retry' }>): Promise<void> {
    const { queue, clock, random } = this.#with;
    this.#countFailure();
    this.#failures += 1;
    this.#exportLog.failed(reason, queue.size);
    const delayMs = nextDelayMs({
      ...this.#settings.retry,
      failures: this.#failures,
      retryAfterMs,
      random: random(),
    });
    // The first sleep of a shutdown is interrupted by it, later ones by its deadline.
    const interruption = this.#stopping.signal.aborted ? this.#cut : this.#stopping;
    await clock.sleep(delayMs, interruption.signal);
  }

  #countFailure(): void {
    this.#with.counters.failedCalls += 1;
  }

  /** Takes the batch off the queue, and each of its records into one counter; or has it sent in parts. */
  async #settle(
    decision: Exclude<ExportDecision, { action: 'retry' }>,
    lines: readonly Uint8Array[],
  ): Promise<void> {
    const { queue, backlog, dropLog } = this.#with;
    this.#failures = 0;
    this.#exportLog.answered(queue.size);
    if (decision.action === 'split') {
      this.#countFailure();
      this.#overdue = Math.max(this.#overdue, lines.length);
      const isNews = this.#limit.shrink(sizeOf(lines));
      if (isNews) this.#exportLog.tooLarge(decision.reason, this.#limit.bytes);
      return;
    }
    queue.remove(lines.length);
    dropLog.left();
    this.#overdue = Math.max(0, this.#overdue - lines.length);
    if (decision.action === 'settle') this.#limit.grow(sizeOf(lines));
    this.#count(decision, lines.length);
    await backlog.settle(lines.length);
  }

  #count(decision: Extract<ExportDecision, { action: 'settle' | 'refuse' }>, batchCount: number): void {
    const { counters } = this.#with;
    if (decision.action === 'refuse') {
      this.#countFailure();
      counters.rejected += batchCount;
      this.#exportLog.refused({ ...decision, rejectedCount: batchCount, message: decision.message });
      return;
    }
    const { exportedCount, rejectedCount, message } = decision;
    counters.exported += exportedCount;
    counters.rejected += rejectedCount;
    if (rejectedCount > 0 || message !== undefined) {
      this.#exportLog.refused({ reason: 'partial_success', rejectedCount, message });
    }
  }
}

function sizeOf(lines: readonly Uint8Array[]): number {
  return lines.reduce((bytes, { length }) => bytes + length, 0);
}
