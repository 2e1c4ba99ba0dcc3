import type { Replica } from '#replicas';
import { codeOf } from '#replicas/terms';
import type { FailedAttemptCode } from './forward.ts';

/** A failed attempt, for the log. */
export interface FailedAttempt {
  readonly code: FailedAttemptCode;
  readonly cause: unknown;
  readonly requestId: string;
  readonly traceId: string;
}

/** Where failed attempts are logged. A pino logger fits. */
export interface AttemptLog {
  debug(fields: object, message: string): void;
}

/**
 * Logs a failed attempt at level debug; the control plane warns of a replica that does not answer. The line holds codes
 * only: an error's message may hold an address or a client's bytes.
 */
export function logFailedAttempt(
  log: AttemptLog,
  replica: Replica,
  { code, cause, requestId, traceId }: FailedAttempt,
): void {
  const errorCode = codeOf(cause) || undefined;
  log.debug(
    { request_id: requestId, replica: replica.name, code, error_code: errorCode, trace_id: traceId },
    'attempt failed',
  );
}
