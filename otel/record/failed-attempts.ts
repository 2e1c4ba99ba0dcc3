import type { HrTime, Span } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { FAILED_ATTEMPT, type FailedAttempt, type RequestRecord } from '#otel/record/registry';
import { isDouble, isInt, isText } from './attribute-values.ts';

/** Adds the failed attempts of a record to its span, each as an event. */
export function addFailedAttempts(
  span: Span,
  { failed_attempts = [] }: Readonly<RequestRecord>,
  startedEpochMs: number,
): void {
  for (const [index, { replica, failure, status, duration_ms, after_ms }] of failed_attempts.entries()) {
    const attributes = {
      [FAILED_ATTEMPT.attempt]: index + 1,
      [FAILED_ATTEMPT.replica]: replica,
      [FAILED_ATTEMPT.errorType]: failure,
      [FAILED_ATTEMPT.httpResponseStatusCode]: status ?? undefined,
      [FAILED_ATTEMPT.durationMs]: duration_ms,
    };
    span.addEvent(FAILED_ATTEMPT.event, attributes, startedEpochMs + after_ms);
  }
}

/** The failed attempts among the events of a span; undefined if there are none. */
export function readFailedAttempts({
  events,
  startTime,
}: Pick<ReadableSpan, 'events' | 'startTime'>): readonly FailedAttempt[] | undefined {
  if (events.length === 0) return undefined;
  const attempts = events.flatMap((event) => readFailedAttempt(event, startTime) ?? []);
  return attempts.length === 0 ? undefined : attempts;
}

function readFailedAttempt(
  { name, time, attributes = {} }: ReadableSpan['events'][number],
  startTime: HrTime,
): FailedAttempt | null {
  if (name !== FAILED_ATTEMPT.event) return null;
  const replica = attributes[FAILED_ATTEMPT.replica];
  const failure = attributes[FAILED_ATTEMPT.errorType];
  const status = attributes[FAILED_ATTEMPT.httpResponseStatusCode];
  const duration_ms = attributes[FAILED_ATTEMPT.durationMs];
  if (!isText(replica) || !isText(failure) || !isDouble(duration_ms)) return null;
  const after_ms = (time[0] - startTime[0]) * 1e3 + (time[1] - startTime[1]) / 1e6;
  return { replica, failure, status: isInt(status) ? status : null, duration_ms, after_ms };
}
