import type { Clock } from '#otel/base';
import {
  type ExportBatch,
  type ExportDecision,
  type ExportHealth,
  type ExportOutcome,
  nextDelayMs,
} from '#otel/export';
import type { ExportCounters } from '../export-stats.ts';

/** Aborted as the export ends. */
export interface ExportSignals {
  /** The shutdown begins: nothing waits for an interval or a back-off. */
  readonly stopping: AbortSignal;
  /** The deadline of the shutdown: the current call is cut. */
  readonly cut: AbortSignal;
}

/** What the calls need. */
export interface ExportCallsCollaborators {
  readonly exportBatch: ExportBatch;
  readonly counters: ExportCounters;
  readonly health: ExportHealth;
  readonly clock: Clock;
  readonly random: () => number;
}

/** The calls to the collector, one at a time, and the delay after those that failed. */
export class ExportCalls {
  readonly #retry: { readonly initialMs: number; readonly maxMs: number };
  readonly #collaborators: ExportCallsCollaborators;
  /** Failed calls since the last call that did not fail. */
  #failures = 0;

  constructor(
    retry: { readonly initialMs: number; readonly maxMs: number },
    collaborators: ExportCallsCollaborators,
  ) {
    this.#retry = retry;
    this.#collaborators = collaborators;
  }

  /** Sends encoded spans once. */
  async attempt(encodedSpans: readonly Uint8Array[], cut: AbortSignal): Promise<ExportOutcome> {
    const { exportBatch, health } = this.#collaborators;
    health.callBegins();
    try {
      return await exportBatch(encodedSpans, cut);
    } catch {
      // An exporter never rejects. If one does, its batch is not lost and the loop goes on.
      return { kind: 'unanswered', code: 'exporter_error' };
    } finally {
      health.callEnds();
    }
  }

  /** A call was answered for good. */
  answered(): void {
    this.#failures = 0;
    this.#collaborators.health.answered();
  }

  /** A call failed: counts it, and waits until it may be repeated. */
  async backOff(
    { reason, retryAfterMs }: Extract<ExportDecision, { action: 'retry' }>,
    { stopping, cut }: ExportSignals,
  ): Promise<void> {
    const { counters, health, clock, random } = this.#collaborators;
    counters.add('failedCalls');
    this.#failures += 1;
    health.failed(reason);
    const delayMs = nextDelayMs({
      ...this.#retry,
      failures: this.#failures,
      retryAfterMs,
      random: random(),
    });
    // The start of a shutdown interrupts the first sleep, and its deadline interrupts later ones.
    await clock.sleep(delayMs, stopping.aborted ? cut : stopping);
  }
}
