import type { FailedAttempt, RequestRecord } from '#otel/record/registry';
import { type OutcomeFacts, type RequestOutcome, toOutcome } from './request-outcome.ts';

/**
 * How an attempt at a replica ended. Those of requests mean the same here, but for what the gateway or the client did:
 * - `error`: a 5xx status, retried or not, no answer in time, or a response that broke off or contained an error event
 * - `not_connected`: no connection came about, so nothing was sent
 * - `loading`: the replica answered that it is loading its model
 * - `client_error`: any other 4xx status of the replica but 499, retried or not
 * - `canceled`: the client left or did not send the rest of its body, or the gateway shut down
 * - `repeated`: sent again to the same replica, which had closed a kept connection, or did not know `include_usage`
 *
 * A replica that was chosen and was drained before anything was sent is no attempt.
 */
export type AttemptOutcome = RequestOutcome | 'not_connected' | 'loading' | 'repeated';

/** All outcomes of attempts. */
export const ATTEMPT_OUTCOMES = [
  'success',
  'error',
  'not_connected',
  'loading',
  'client_error',
  'canceled',
  'repeated',
  'other',
] as const satisfies readonly AttemptOutcome[];

/** The codes of what is the fault of the replica: it broke off, was silent, or sent an error event. */
export const REPLICA_FAULTS: ReadonlySet<string> = new Set([
  'upstream_failed',
  'upstream_timeout',
  'upstream_error',
]);

/** Whether an attempt with this outcome is an error of its replica. */
export function isAttemptError(outcome: AttemptOutcome): boolean {
  return outcome === 'error' || outcome === 'not_connected';
}

/** The outcome of one of the failed attempts of a record. */
export function toFailedAttemptOutcome({
  failure,
  status,
}: Pick<FailedAttempt, 'failure' | 'status'>): AttemptOutcome {
  switch (failure) {
    case 'not_connected':
    case 'loading':
      return failure;
    case 'reset_on_reuse':
    case 'usage_refused':
      return 'repeated';
    case 'status_retried':
      return status !== null && status < 500 ? 'client_error' : 'error';
    default:
      return REPLICA_FAULTS.has(failure) ? 'error' : 'canceled';
  }
}

/** The fields of a record that tell of its attempts. */
export type AttemptFacts = OutcomeFacts & Pick<RequestRecord, 'replica' | 'attempts' | 'failed_attempts'>;

/**
 * The outcome of the attempt that is not among the failed ones: the last one, at the `replica` of the record. Null if
 * there is none: all attempts have failed, or none was made.
 */
export function toLastAttemptOutcome(record: AttemptFacts): AttemptOutcome | null {
  const { replica, attempts = 1, failed_attempts, error_type } = record;
  if (replica === undefined || attempts <= (failed_attempts?.length ?? 0)) return null;
  const outcome = toOutcome(record);
  // The gateway ended it. Where the client left, the status is the replica's.
  const isEnded =
    error_type !== undefined && error_type !== 'client_closed' && !REPLICA_FAULTS.has(error_type);
  return isEnded && (outcome === 'error' || outcome === 'client_error') ? 'canceled' : outcome;
}

/** How much of the time of a request its last attempt had no part in: it waited for a replica, or tried others. */
export function toMsBeforeLastAttempt({
  queue_ms = 0,
  failed_attempts = [],
}: Pick<RequestRecord, 'queue_ms' | 'failed_attempts'>): number {
  return failed_attempts.reduce((sum, { duration_ms }) => sum + duration_ms, queue_ms);
}
