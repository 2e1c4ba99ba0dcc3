import type { Clock, Log } from '#otel/base';
import { adviseOnCollector, toShownAddress } from '#otel/collector';

/** A collector that warns with every batch is logged once in this time. */
const WARNING_LOG_MS = 60_000;
/** A rejection is over when a batch is taken whole, or so long after the last one. */
const REJECTION_LASTS_MS = 60_000;
/** For so long after its end the duration of a call says how calls are. */
const CALL_COUNTS_MS = 10_000;

/** Why the export does not work. */
interface ExportProblem {
  /** A code of the system, `timeout`, `http_400` …, or `partial_success`. */
  readonly reason: string;
  /** The collector's address, without credentials; empty for files. */
  readonly collector: string;
  /** What to do about it; empty if that is not known. */
  readonly advice: string;
}

/** What the collector rejected: a whole batch, or part of one. */
export interface Rejection {
  readonly rejectedCount: number;
  /** `http_400` …, or `partial_success`. */
  readonly reason: string;
  /** The collector's own words. */
  readonly message: string | undefined;
}

/** How the collector rejects records. */
interface RejectionState extends ExportProblem {
  /** The collector's own words; empty if it has none. */
  readonly message: string;
  /** Since the start. */
  readonly rejected: number;
  /** False: it has taken a batch whole since, or has rejected nothing for a minute. */
  readonly isGoingOn: boolean;
}

/** How the export is doing. The counters count each call. */
export class ExportHealth {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #collector: URL | undefined;
  #outage: (ExportProblem & { readonly failedCalls: number }) | null = null;
  #rejection: (ExportProblem & { readonly message: string; lastMs: number }) | null = null;
  /** Rejected records since the start. */
  #rejected = 0;
  #callBeganAtMs: number | null = null;
  #lastCall = { tookMs: 0, endedAtMs: Number.NEGATIVE_INFINITY };
  #warningLoggedAtMs = Number.NEGATIVE_INFINITY;

  /** `collector`: where records are posted; undefined for files. */
  constructor(log: Log, clock: Clock, collector?: URL) {
    this.#log = log;
    this.#clock = clock;
    this.#collector = collector;
  }

  /** That the last calls failed: why the last one did, and how many. Null: the last call was answered. */
  get outage(): (ExportProblem & { readonly failedCalls: number }) | null {
    return this.#outage;
  }

  /** The last time that the collector rejected records; null: it never has. */
  get rejection(): RejectionState | null {
    if (this.#rejection === null) return null;
    const { lastMs, ...problem } = this.#rejection;
    const isGoingOn = this.#clock.nowMs() - lastMs < REJECTION_LASTS_MS;
    return { ...problem, rejected: this.#rejected, isGoingOn };
  }

  /** How long the call under way has taken, or the last one if it ended a moment ago. */
  get callMs(): number {
    const nowMs = this.#clock.nowMs();
    const runningMs = this.#callBeganAtMs === null ? 0 : nowMs - this.#callBeganAtMs;
    const { tookMs, endedAtMs } = this.#lastCall;
    return Math.max(runningMs, nowMs - endedAtMs < CALL_COUNTS_MS ? tookMs : 0);
  }

  /** A call begins. */
  callBegins(): void {
    this.#callBeganAtMs = this.#clock.nowMs();
  }

  /** The call has ended, in whichever way. */
  callEnds(): void {
    const endedAtMs = this.#clock.nowMs();
    this.#lastCall = { tookMs: endedAtMs - (this.#callBeganAtMs ?? endedAtMs), endedAtMs };
    this.#callBeganAtMs = null;
  }

  /** A call failed and will be repeated. */
  failed(reason: string): void {
    this.#outage = { ...this.#describe(reason), failedCalls: (this.#outage?.failedCalls ?? 0) + 1 };
  }

  /** A call was answered: the collector accepted the batch, or rejected it for good. */
  answered(): void {
    this.#outage = null;
  }

  /** The collector took a batch as it is. */
  tookAll(): void {
    if (this.#rejection !== null) this.#rejection.lastMs = Number.NEGATIVE_INFINITY;
  }

  /** Records were rejected. */
  rejected({ rejectedCount, reason, message = '' }: Rejection): void {
    this.#rejected += rejectedCount;
    this.#rejection = { ...this.#describe(reason), message, lastMs: this.#clock.nowMs() };
  }

  /** A batch was taken, with a warning in the collector's own words. */
  warned(message: string): void {
    if (this.#clock.nowMs() - this.#warningLoggedAtMs < WARNING_LOG_MS) return;
    this.#warningLoggedAtMs = this.#clock.nowMs();
    this.#log.warn({ collector_message: message }, 'collector took a batch with a warning');
  }

  /** A ledger span was rejected: what it says is not proven. */
  ledgerRejected(reason: string, message: string | undefined): void {
    const { collector, advice } = this.#describe(reason);
    const fields = {
      reason,
      ...(collector === '' ? {} : { collector }),
      ...(advice === '' ? {} : { advice }),
      collector_message: message,
    };
    this.#log.error(fields, 'collector rejected a ledger span');
  }

  /** A batch was too large, and batches are smaller from now on. */
  tooLarge(reason: string, limitBytes: number): void {
    this.#log.warn(
      { reason, limit_bytes: limitBytes },
      'batch too large for the collector: smaller ones follow',
    );
  }

  /** The export ends: the last line about rejected records, which nothing else tells of any more. */
  end(): void {
    const { reason, message } = this.#rejection ?? {};
    if (this.#rejected > 0)
      this.#log.error(
        { rejected: this.#rejected, reason, collector_message: message },
        'records were rejected by the collector',
      );
    this.#rejected = 0;
  }

  #describe(reason: string): ExportProblem {
    if (this.#collector === undefined) return { reason, collector: '', advice: '' };
    const advice = adviseOnCollector(reason, this.#collector) ?? '';
    return { reason, collector: toShownAddress(this.#collector), advice };
  }
}
