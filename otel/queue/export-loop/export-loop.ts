import { type Clock, type Log, waitAtMost } from '#otel/base';
import { decideExport, type ExportBatch, type ExportDecision, ExportHealth } from '#otel/export';
import type { LedgerOutbox, RecordLedger } from '#otel/ledger';
import type { Drops } from '../drops.ts';
import type { ExportCounters } from '../export-stats.ts';
import type { QueuedRecord, RecordQueue } from '../record-queue.ts';
import { BatchLimit } from './batch-limit.ts';
import { ExportCalls, type ExportSignals } from './export-calls.ts';
import type { SpoolTransfer } from './spool-transfer.ts';

/** After this many cut connections in a row with the same batch, the batch is assumed to be too large. */
const CUTS_BEFORE_SPLIT = 2;

/** When batches are sent, and how failures are repeated. Times are in milliseconds. */
export interface ExportLoopSettings {
  readonly batchSize: number;
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
}

/** What the loop works with. */
export interface ExportLoopCollaborators {
  readonly queue: RecordQueue;
  readonly spoolTransfer: SpoolTransfer;
  readonly ledger: RecordLedger;
  readonly ledgerOutbox: LedgerOutbox;
  readonly counters: ExportCounters;
  readonly exportBatch: ExportBatch;
  /** Where records are posted, for the log; undefined for files. */
  readonly collector?: URL | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly drops: Drops;
  readonly random: () => number;
}

/**
 * The one loop that empties the queue: one export at a time, and each batch again until the collector has accepted or
 * rejected it. A batch is sent when it is full, or `intervalMs` after its first record was queued. It is full with
 * `batchSize` records, or with as many bytes as the collector accepts.
 */
export class ExportLoop {
  readonly #settings: ExportLoopSettings;
  readonly #collaborators: ExportLoopCollaborators;
  readonly #health: ExportHealth;
  readonly #calls: ExportCalls;
  readonly #ledgerExport: LedgerExport;
  readonly #signals: ExportSignals;
  readonly #limit = new BatchLimit();
  /** Aborted when there may be a reason to send before the interval is over. */
  #notified = new AbortController();
  /** Aborted when shutdown begins: from then on, the loop does not wait for an interval or a back-off. */
  readonly #stopping = new AbortController();
  /** Aborted at the deadline of the shutdown: the current call is cut. */
  readonly #cut = new AbortController();
  readonly #running: Promise<void>;
  #stopped: Promise<void> | undefined;
  /** Set before `stop` resolves: the loop then leaves the queue to the caller. */
  #isOver = false;
  /** How many records at the head of the queue are due: the rest of a batch that was split. */
  #dueCount = 0;
  #exportingCount = 0;

  constructor(settings: ExportLoopSettings, collaborators: ExportLoopCollaborators) {
    this.#settings = settings;
    this.#collaborators = collaborators;
    this.#health = new ExportHealth(collaborators.log, collaborators.clock, collaborators.collector);
    this.#calls = new ExportCalls(settings.retry, { ...collaborators, health: this.#health });
    const signals = { stopping: this.#stopping.signal, cut: this.#cut.signal };
    this.#signals = signals;
    this.#ledgerExport = new LedgerExport({
      ...collaborators,
      calls: this.#calls,
      health: this.#health,
      signals,
    });
    collaborators.ledgerOutbox.onAdded = () => this.#notified.abort();
    this.#running = this.#run();
  }

  /** How many records the current batch has, also while its call is repeated. */
  get exportingCount(): number {
    return this.#exportingCount;
  }

  /** What is wrong with the export. */
  get health(): Pick<ExportHealth, 'outage' | 'rejection' | 'callMs'> {
    return this.#health;
  }

  /** Tells the loop that a record was queued. Cheap: it is called for every record. */
  notify(): void {
    // While a full batch waits, every record calls this. An abort creates an exception, even the second time.
    if (this.#notified.signal.aborted) return;
    if (this.#collaborators.queue.size === 1 || this.#isBatchFull()) this.#notified.abort();
  }

  /** Sends what is queued until the deadline. The rest stays in the queue. Idempotent. */
  stop(deadlineMs: number): Promise<void> {
    this.#stopped ??= this.#finish(deadlineMs);
    return this.#stopped;
  }

  async #finish(deadlineMs: number): Promise<void> {
    this.#stopping.abort();
    this.#notified.abort();
    // The deadline holds even for a write that ignores the signal, for example on a file system that hangs.
    await waitAtMost(deadlineMs, this.#running, this.#collaborators.clock);
    this.#cut.abort();
    this.#isOver = true;
    this.#health.end();
    this.#collaborators.drops.end();
  }

  async #run(): Promise<void> {
    while (!this.#cut.signal.aborted) {
      // During shutdown, records of earlier runs are safest in their files.
      if (!this.#stopping.signal.aborted) await this.#restore();
      await this.#untilBatchIsDue();
      const batch = this.#nextBatch();
      this.#exportingCount = batch.length;
      if (batch.length > 0) await this.#deliver(batch);
      this.#exportingCount = 0;
      const isEnd = batch.length === 0 && this.#stopping.signal.aborted;
      if (isEnd) this.#collaborators.ledger.end();
      await this.#ledgerExport.sendAll();
      if (isEnd) return;
    }
  }

  async #restore(): Promise<void> {
    const { spoolTransfer, ledgerOutbox } = this.#collaborators;
    await spoolTransfer.restoreNext();
    await ledgerOutbox.restoreNext();
  }

  /** Restored records have batches of their own: their file is removed as soon as they are settled. */
  #nextBatch(): readonly QueuedRecord[] {
    const { queue, spoolTransfer } = this.#collaborators;
    const { batchSize } = this.#settings;
    const { restoredAtHead } = spoolTransfer;
    const maxCount = restoredAtHead > 0 ? Math.min(batchSize, restoredAtHead) : batchSize;
    return queue.peek(maxCount, this.#limit.bytes);
  }

  #isBatchFull(): boolean {
    const { queue } = this.#collaborators;
    return queue.size >= this.#settings.batchSize || queue.bytes >= this.#limit.bytes;
  }

  /** Returns with an empty queue only during shutdown. */
  async #untilBatchIsDue(): Promise<void> {
    const { queue, ledgerOutbox, clock } = this.#collaborators;
    while (!this.#stopping.signal.aborted && this.#dueCount === 0 && !this.#isBatchFull()) {
      if (ledgerOutbox.size > 0) return;
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

  /** Sends a batch until it is settled, or must be split. */
  async #deliver(batch: readonly QueuedRecord[]): Promise<void> {
    const encodedSpans = batch.map(({ encodedSpan }) => encodedSpan);
    let cuts = 0;
    while (!this.#cut.signal.aborted) {
      const outcome = await this.#calls.attempt(encodedSpans, this.#cut.signal);
      if (this.#isOver) return;
      const decision = decideExport(outcome, encodedSpans.length);
      if (decision.action !== 'retry') {
        await this.#settle(decision, encodedSpans);
        return;
      }
      cuts = decision.mayBeTooLarge === true ? cuts + 1 : 0;
      await this.#calls.backOff(decision, this.#signals);
      if (cuts >= CUTS_BEFORE_SPLIT && encodedSpans.length > 1) {
        this.#dueCount = Math.max(this.#dueCount, encodedSpans.length);
        this.#limit.suspect(sizeOf(encodedSpans));
        return;
      }
    }
  }

  /** Removes the batch from the queue and counts each of its records once; or has it sent in parts. */
  async #settle(
    decision: Exclude<ExportDecision, { action: 'retry' }>,
    encodedSpans: readonly Uint8Array[],
  ): Promise<void> {
    const { queue, spoolTransfer, ledger, counters, drops } = this.#collaborators;
    this.#calls.answered();
    if (decision.action === 'split') {
      counters.add('failedCalls');
      this.#dueCount = Math.max(this.#dueCount, encodedSpans.length);
      const isNews = this.#limit.shrink(sizeOf(encodedSpans));
      if (isNews) this.#health.tooLarge(decision.reason, this.#limit.bytes);
      return;
    }
    if (decision.action === 'reject') ledger.rejected(encodedSpans);
    queue.remove(encodedSpans.length);
    drops.removed();
    this.#dueCount = Math.max(0, this.#dueCount - encodedSpans.length);
    if (decision.action === 'settle') this.#limit.grow(sizeOf(encodedSpans));
    this.#count(decision, encodedSpans.length);
    await spoolTransfer.settle(encodedSpans.length);
  }

  #count(decision: Extract<ExportDecision, { action: 'settle' | 'reject' }>, batchCount: number): void {
    const { counters } = this.#collaborators;
    if (decision.action === 'reject') {
      counters.add('failedCalls');
      counters.add('rejected', batchCount);
      this.#health.rejected({ ...decision, rejectedCount: batchCount, message: decision.message });
      return;
    }
    const { exportedCount, rejectedCount, message } = decision;
    counters.add('exported', exportedCount);
    counters.add('rejected', rejectedCount);
    if (rejectedCount > 0) this.#health.rejected({ reason: 'partial_success', rejectedCount, message });
    else this.#health.tookAll();
    if (rejectedCount === 0 && message !== undefined) this.#health.warned(message);
  }
}

function sizeOf(encodedSpans: readonly Uint8Array[]): number {
  return encodedSpans.reduce((bytes, { length }) => bytes + length, 0);
}

/** What the export of ledger spans works with. */
interface LedgerExportCollaborators {
  readonly ledgerOutbox: LedgerOutbox;
  readonly counters: ExportCounters;
  readonly calls: ExportCalls;
  readonly health: ExportHealth;
  readonly signals: ExportSignals;
}

/** Sends ledger spans as records are sent, between their batches. */
class LedgerExport {
  readonly #collaborators: LedgerExportCollaborators;

  constructor(collaborators: LedgerExportCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Sends those that wait, one in each call: a collector that rejects one rejects no other with it. */
  async sendAll(): Promise<void> {
    const { ledgerOutbox, counters, calls, health, signals } = this.#collaborators;
    for (let span = ledgerOutbox.first; span !== undefined; span = ledgerOutbox.first) {
      if (signals.cut.aborted) return;
      const outcome = await calls.attempt([span], signals.cut);
      if (signals.cut.aborted && outcome.kind === 'unanswered') return;
      const decision = decideExport(outcome, 1);
      if (decision.action === 'retry') {
        await calls.backOff(decision, signals);
        continue;
      }
      calls.answered();
      if (decision.action === 'reject') {
        counters.add('failedCalls');
        health.ledgerRejected(decision.reason, decision.message);
      } else if (decision.action === 'settle' && decision.rejectedCount > 0) {
        health.ledgerRejected('partial_success', decision.message);
      }
      await ledgerOutbox.settleFirst();
    }
  }
}
