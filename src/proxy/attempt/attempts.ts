import type { Log } from '#otel/base';
import type { Lease, NoLease, Replica, Wait } from '#replicas';
import { codeOf } from '#replicas/reachability';
import type { FailureCode } from '../failure.ts';
import type { Recording } from '../record/recording.ts';
import type { AttemptRequest } from './attempt.ts';

/** The answer to a request for a replica: a lease, why there is none, or a wait for one. */
export type Acquired = Lease | NoLease | 'overloaded' | Wait;

/** Why an attempt failed. */
export type FailedAttemptCode =
  | 'not_connected'
  | 'loading'
  | 'reset_on_reuse'
  | 'usage_refused'
  | 'status_retried'
  | FailureCode;

/** How the same replica is tried. */
export interface AttemptVariant {
  /** Ask for usage where the client did not. */
  readonly withUsage: boolean;
  /** Use a connection that was never used before. */
  readonly onFreshConnection: boolean;
  /** Try another replica if this one answers a status of `retry.statuses`. */
  readonly mayRetryStatus: boolean;
}

/** What a request is called in the log. */
interface RequestIds {
  readonly requestId: string;
  readonly traceId: string;
}

/**
 * The attempts to bring one request to a replica: what `forward` asks for and reports. One attempt at a time. Kinds of
 * requests differ in where they may go, and in what is sent there.
 */
export abstract class Attempts {
  /** Gets what happens; null: the request leaves no record. */
  readonly #report: Recording | null;
  readonly #ids: RequestIds;
  readonly #log: Log<'debug'>;

  constructor(report: Recording | null, ids: RequestIds, log: Log<'debug'>) {
    this.#report = report;
    this.#ids = ids;
    this.#log = log;
  }

  /** Asks for a replica other than those tried. */
  abstract acquire(tried: ReadonlySet<Replica>): Acquired;

  /** Begins an attempt. */
  abstract begin(replica: Replica, variant: AttemptVariant): AttemptRequest;

  /**
   * The replica that the request waited for cannot take it. Returns whether it waited for that one only, and may go to
   * any from now on.
   */
  widen(): boolean {
    return false;
  }

  /** The request holds this lease until it is given back. */
  hold(lease: Lease): void {
    const { gpuShare } = lease;
    this.#report?.noteRoute(lease);
    if (gpuShare !== null) this.#report?.noteGpuShare(gpuShare);
  }

  /** The attempt does not count: its replica was drained before anything was sent. */
  withdraw(): void {
    this.#report?.withdrawAttempt();
  }

  /**
   * The attempt failed, and another may follow. `statusCode`: what the replica answered, if it did. It is logged at level
   * debug; the control plane warns of a replica that does not answer. The line holds codes only: an error's message may
   * hold an address or a client's bytes.
   */
  fail(replica: Replica, code: FailedAttemptCode, cause: unknown, statusCode?: number): void {
    this.#report?.failAttempt(replica.name, code, statusCode);
    const { requestId, traceId } = this.#ids;
    const error_code = codeOf(cause) || undefined;
    this.#log.debug(
      { request_id: requestId, replica: replica.name, code, error_code, trace_id: traceId },
      'attempt failed',
    );
  }

  /** The attempt was the last: its response was relayed, completely or up to a break, or the client left. */
  finish(): void {
    this.#report?.finishAttempt();
    this.#report?.noteOpenResponse();
  }
}
