import type { Span } from '@opentelemetry/api';
import { FAILED_ATTEMPT } from '#otel/record/registry';

/** An attempt that did not serve the request. */
export interface FailedAttempt {
  /** The first attempt is 1. */
  readonly attempt: number;
  readonly replica: string;
  /** The failure code. */
  readonly code: string;
  /** What the replica answered; undefined if it did not. */
  readonly status?: number | undefined;
  readonly durationMs: number;
}

/** Adds a failed attempt to the request's span, as an event. */
export function addFailedAttempt(span: Span, facts: FailedAttempt, epochMs: number): void {
  const { attempt, replica, code, status, durationMs } = facts;
  const attributes = {
    [FAILED_ATTEMPT.attempt]: attempt,
    [FAILED_ATTEMPT.replica]: replica,
    [FAILED_ATTEMPT.errorType]: code,
    ...(status === undefined ? {} : { [FAILED_ATTEMPT.httpResponseStatusCode]: status }),
    [FAILED_ATTEMPT.durationMs]: durationMs,
  };
  span.addEvent(FAILED_ATTEMPT.event, attributes, epochMs);
}
