/*
 * How a request and its attempts ended, as its record tells it: success, error, client error, canceled, and the
 * `error.type` of each.
 *
 * It never knows a span.
 */

export {
  ATTEMPT_OUTCOMES,
  type AttemptOutcome,
  isAttemptError,
  REPLICA_FAULTS,
  toFailedAttemptOutcome,
  toLastAttemptOutcome,
  toMsBeforeLastAttempt,
} from './attempt-outcome.ts';
export {
  hasFailed,
  type RequestOutcome,
  toErrorType,
  toFailureType,
  toOutcome,
} from './request-outcome.ts';
