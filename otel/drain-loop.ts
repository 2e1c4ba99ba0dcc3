import type { BoundedQueue } from './bounded-queue.ts';
import type { Clock } from './clock.ts';
import { decideExport, type ExportBatch, type ExportDecision, type ExportOutcome } from './export-outcome.ts';
import type { ExportCounters } from './export-stats.ts';
import { nextDelayMs } from './retry.ts';
import type { TelemetryLog } from './telemetry-log.ts';

/** A record on its way to the collector: one encoded span, and when it came by the loop's clock. */
export interface QueuedRecord {
  readonly line: Uint8Array;
  readonly queuedAtMs: number;
}

/** When batches leave and how failures are repeated; times in milliseconds. */
export interface DrainLoopSettings {
  readonly batchSize: number;
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
}

/** What the loop works on and with. */
export interface DrainLoopCollaborators {
  readonly queue: BoundedQueue<QueuedRecord>;
  readonly counters: ExportCounters;
  readonly exportBatch: ExportBatch;
  readonly clock: Clock;
  readonly log: TelemetryLog;
  readonly random: () => number;
}

/**
 * The one loop that empties the queue: one export at a time, each batch again and again until the collector has
 * taken or refused it. A batch leaves when it is full or `intervalMs` after its first record came.
 */
export class DrainLoop {
  readonly #settings: DrainLoopSettings;
  readonly #with: DrainLoopCollaborators;
  /** Aborted when there may be a reason to send before the sleep for the interval is over. */
  #notified = new AbortController();
  /** Aborted when shutdown begins: nothing waits for its interval or its back-off any more. */
  readonly #stopping = new AbortController();
  /** Aborted when shutdown's deadline has come: the call under way is cut. */
  readonly #cut = new AbortController();
  readonly #running: Promise<void>;
  #stopped: Promise<void> | undefined;
  /** Failed calls since the last that did not fail. */
  #failures = 0;

  constructor(settings: DrainLoopSettings, collaborators: DrainLoopCollaborators) {
    this.#settings = settings;
    this.#with = collaborators;
    this.#running = this.#run();
  }

  /** Tells the loop that a record was queued. Cheap: it is called for every record. */
  notify(): void {
    const { size } = this.#with.queue;
    if (size === 1 || size >= this.#settings.batchSize) this.#notified.abort();
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
  }

  async #run(): Promise<void> {
    while (!this.#cut.signal.aborted) {
      await this.#untilBatchIsDue();
      const batch = this.#with.queue.peek(this.#settings.batchSize);
      if (batch.length === 0) return;
      await this.#deliver(batch);
    }
  }

  /** Comes back with an empty queue only when stopping. */
  async #untilBatchIsDue(): Promise<void> {
    const { queue, clock } = this.#with;
    while (!this.#stopping.signal.aborted && queue.size < this.#settings.batchSize) {
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

  async #deliver(batch: readonly QueuedRecord[]): Promise<void> {
    const lines = batch.map(({ line }) => line);
    while (!this.#cut.signal.aborted) {
      const decision = decideExport(await this.#attempt(lines), lines.length);
      if (decision.action !== 'retry') {
        this.#settle(decision, lines.length);
        return;
      }
      this.#countFailure(decision.reason);
      const delayMs = nextDelayMs({
        ...this.#settings.retry,
        failures: this.#failures,
        retryAfterMs: decision.retryAfterMs,
        random: this.#with.random(),
      });
      // The first sleep of a shutdown is interrupted by it, later ones by its deadline.
      const interruption = this.#stopping.signal.aborted ? this.#cut : this.#stopping;
      await this.#with.clock.sleep(delayMs, interruption.signal);
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

  /** Takes the batch off the queue, and each of its records into one counter. */
  #settle(decision: Exclude<ExportDecision, { action: 'retry' }>, batchCount: number): void {
    const { queue, counters, log } = this.#with;
    queue.remove(batchCount);
    if (decision.action === 'refuse') {
      counters.rejected += batchCount;
      counters.failedCalls += 1;
      const { reason, message } = decision;
      this.#failures = 0;
      log.error({ reason, collectorMessage: message, rejected: batchCount }, 'collector refused a batch');
      return;
    }
    const { exportedCount, rejectedCount, message } = decision;
    counters.exported += exportedCount;
    counters.rejected += rejectedCount;
    if (rejectedCount > 0 || message !== undefined) {
      log.warn(
        { rejected: rejectedCount, collectorMessage: message },
        'collector took a batch with reservations',
      );
    }
    if (this.#failures > 0) log.info({ failedCalls: this.#failures }, 'export works again');
    this.#failures = 0;
  }

  /** An outage is one warning, not one a call: `failedCalls` counts them. */
  #countFailure(reason: string): void {
    const { queue, counters, log } = this.#with;
    counters.failedCalls += 1;
    this.#failures += 1;
    if (this.#failures === 1) log.warn({ reason, queued: queue.size }, 'export failed, will be repeated');
  }
}
