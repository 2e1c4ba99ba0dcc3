import type { Clock } from '../clock.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/** A collector that comes and goes makes a line for each change, but not more often than this. */
const OUTAGE_LINES_MS = 10_000;
/** A collector that refuses every batch makes one line in this time, with the sum of what it refused. */
const REFUSAL_LINES_MS = 60_000;

/** What the collector refused: a batch for good, or part of one. */
export interface Refusal {
  /** Of records. */
  readonly rejectedCount: number;
  /** `http_400` …, or `partial_success`. */
  readonly reason: string;
  /** The collector's own words. */
  readonly message: string | undefined;
}

/**
 * Says how the export is doing: one line when the collector is lost and one when it is back, not one a call.
 * The counters count each.
 */
export class ExportLog {
  readonly #log: TelemetryLog;
  readonly #clock: Clock;
  /** Failed calls since the last line that told of one, or of the end of the outage. */
  #failedCalls = 0;
  #isOutageTold = false;
  #outageToldAtMs = Number.NEGATIVE_INFINITY;
  /** Records rejected that no line has told of. */
  #rejected = 0;
  #refusalToldAtMs = Number.NEGATIVE_INFINITY;

  constructor(log: TelemetryLog, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** A call failed and will be repeated. */
  failed(reason: string, queued: number): void {
    this.#failedCalls += 1;
    if (this.#isOutageTold || this.#clock.nowMs() - this.#outageToldAtMs < OUTAGE_LINES_MS) return;
    this.#isOutageTold = true;
    this.#outageToldAtMs = this.#clock.nowMs();
    this.#log.warn({ reason, queued }, 'collector lost: the export is repeated until it is back');
  }

  /** A call was answered: the collector took the batch, or refused it for good. */
  answered(queued: number): void {
    if (!this.#isOutageTold) return;
    this.#log.info({ failed_calls: this.#failedCalls, queued }, 'collector back');
    this.#isOutageTold = false;
    this.#failedCalls = 0;
  }

  /** Records were rejected, or (a count of 0) taken with a warning. */
  refused({ rejectedCount, reason, message }: Refusal): void {
    this.#rejected += rejectedCount;
    if (this.#clock.nowMs() - this.#refusalToldAtMs < REFUSAL_LINES_MS) return;
    this.#refusalToldAtMs = this.#clock.nowMs();
    const fields = { reason, rejected: this.#rejected, collector_message: message };
    if (rejectedCount > 0) this.#log.error(fields, 'collector rejected records');
    else this.#log.warn(fields, 'collector took a batch with a warning');
    this.#rejected = 0;
  }

  /** A batch was too large, and batches are smaller from now on. */
  tooLarge(reason: string, limitBytes: number): void {
    this.#log.warn(
      { reason, limit_bytes: limitBytes },
      'batch too large for the collector: smaller ones follow',
    );
  }

  /** The export ends: tells what no line has told of yet. */
  end(): void {
    if (this.#rejected > 0) this.#log.error({ rejected: this.#rejected }, 'collector rejected records');
    this.#rejected = 0;
  }
}
