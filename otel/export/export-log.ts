import type { Clock, TelemetryLog } from '#otel/base';
import { adviseOnCollector, toShownAddress } from '#otel/collector';

/** A collector that comes and goes is logged at each change, but at most once in this time. */
const OUTAGE_LOG_MS = 10_000;
/** A collector that rejects every batch is logged once in this time, with the sum of rejected records. */
const REJECTION_LOG_MS = 60_000;

const COLLECTOR_WORDS = {
  lost: 'collector lost: the export is repeated until it is back',
  back: 'collector back',
} as const;
const FILE_WORDS = {
  lost: 'records cannot be written: the export is repeated until they can',
  back: 'records are written again',
} as const;

/** What the collector rejected: a whole batch, or part of one. */
export interface Rejection {
  readonly rejectedCount: number;
  /** `http_400` …, or `partial_success`. */
  readonly reason: string;
  /** The collector's own words. */
  readonly message: string | undefined;
}

/**
 * Logs how the export is doing: one line when the collector is lost and one when it is back, not one for each call. The
 * counters count each call. A line about a problem has the collector's address and, where known, what to do about it.
 */
export class ExportLog {
  readonly #log: TelemetryLog;
  readonly #clock: Clock;
  readonly #collector: URL | undefined;
  readonly #words: typeof COLLECTOR_WORDS | typeof FILE_WORDS;
  /** Failed calls since the last line about one, or about the end of an outage. */
  #failedCalls = 0;
  #isOutageLogged = false;
  #outageLoggedAtMs = Number.NEGATIVE_INFINITY;
  /** Rejected records that are not logged yet. */
  #rejected = 0;
  #rejectionLoggedAtMs = Number.NEGATIVE_INFINITY;

  /** `collector`: where records are posted; undefined for files. */
  constructor(log: TelemetryLog, clock: Clock, collector?: URL) {
    this.#log = log;
    this.#clock = clock;
    this.#collector = collector;
    this.#words = collector === undefined ? FILE_WORDS : COLLECTOR_WORDS;
  }

  /** A call failed and will be repeated. */
  failed(reason: string, queued: number): void {
    this.#failedCalls += 1;
    if (this.#isOutageLogged || this.#clock.nowMs() - this.#outageLoggedAtMs < OUTAGE_LOG_MS) return;
    this.#isOutageLogged = true;
    this.#outageLoggedAtMs = this.#clock.nowMs();
    this.#log.warn({ ...this.#describe(reason), queued }, this.#words.lost);
  }

  /** A call was answered: the collector accepted the batch, or rejected it for good. */
  answered(queued: number): void {
    if (!this.#isOutageLogged) return;
    this.#log.info({ failed_calls: this.#failedCalls, queued }, this.#words.back);
    this.#isOutageLogged = false;
    this.#failedCalls = 0;
  }

  /** Records were rejected, or (with a count of 0) accepted with a warning. */
  rejected({ rejectedCount, reason, message }: Rejection): void {
    this.#rejected += rejectedCount;
    if (this.#clock.nowMs() - this.#rejectionLoggedAtMs < REJECTION_LOG_MS) return;
    this.#rejectionLoggedAtMs = this.#clock.nowMs();
    const fields = {
      ...this.#describe(reason),
      rejected: this.#rejected,
      collector_message: message,
    };
    if (rejectedCount > 0) this.#log.error(fields, 'collector rejected records');
    else this.#log.warn(fields, 'collector took a batch with a warning');
    this.#rejected = 0;
  }

  /** A ledger span was rejected: what it says is not proven. */
  ledgerRejected(reason: string, message: string | undefined): void {
    this.#log.error(
      { ...this.#describe(reason), collector_message: message },
      'collector rejected a ledger span',
    );
  }

  /** A batch was too large, and batches are smaller from now on. */
  tooLarge(reason: string, limitBytes: number): void {
    this.#log.warn(
      { reason, limit_bytes: limitBytes },
      'batch too large for the collector: smaller ones follow',
    );
  }

  #describe(reason: string): object {
    if (this.#collector === undefined) return { reason };
    const advice = adviseOnCollector(reason, this.#collector);
    return {
      reason,
      collector: toShownAddress(this.#collector),
      ...(advice === undefined ? {} : { advice }),
    };
  }

  /** The export ends: logs the rejected records that are not logged yet. */
  end(): void {
    if (this.#rejected > 0) this.#log.error({ rejected: this.#rejected }, 'collector rejected records');
    this.#rejected = 0;
  }
}
