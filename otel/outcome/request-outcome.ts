import type { RequestRecord } from '#otel/record/registry';

/**
 * How a request ended. The status decides; below 400 it is the end of the response.
 * - `error`: a 5xx status, or a response that broke off or contained an error event
 * - `client_error`: any other 4xx status but 499, from the replica or the gateway
 * - `canceled`: the client disconnected before the end of its response (499, or `client_closed` in the middle)
 * - `success`: a complete 2xx response
 * - `other`: a complete response with any other status, such as a redirect
 */
export type RequestOutcome = 'success' | 'error' | 'client_error' | 'canceled' | 'other';

/** The fields of a record that decide its outcome. */
export type OutcomeFacts = Pick<RequestRecord, 'status' | 'error_type' | 'truncated'>;

/** The outcome of a request. */
export function toOutcome({ status, error_type, truncated }: OutcomeFacts): RequestOutcome {
  if (status >= 500) return 'error';
  if (status === 499) return 'canceled';
  if (status >= 400) return 'client_error';
  if (error_type === 'client_closed') return 'canceled';
  if (truncated === true || error_type !== undefined) return 'error';
  return status >= 200 && status < 300 ? 'success' : 'other';
}

/** Whether a request failed: an error or a client error. A client that disconnects does not fail its request. */
export function hasFailed(facts: OutcomeFacts): boolean {
  const outcome = toOutcome(facts);
  return outcome === 'error' || outcome === 'client_error';
}

/**
 * Returns the `error.type` of a failed request, otherwise undefined. A request has failed if its status is 5xx, if an
 * error occurred in the middle of the response, or if the response was truncated. The type is the gateway's code or
 * the replica's status. A 4xx is not an error on a SERVER span (semantic conventions, HTTP spans, "Status").
 */
export function toErrorType(record: Readonly<RequestRecord>): string | undefined {
  const isServerError = record.status >= 500;
  const isMidResponseError = record.status < 400 && record.error_type !== undefined;
  if (!isServerError && !isMidResponseError && record.truncated !== true) return undefined;
  return record.error_type ?? (isServerError ? String(record.status) : '_OTHER');
}

/**
 * Returns the `error.type` of a request that failed from the caller's point of view, otherwise undefined. That includes
 * each 4xx (semantic conventions, HTTP spans, "Status"), and not a client that left ("intentional cancellation").
 */
export function toFailureType(record: Readonly<RequestRecord>): string | undefined {
  if (record.status === 499 || record.error_type === 'client_closed') return undefined;
  const { error_type, status } = record;
  return toErrorType(record) ?? error_type ?? (status >= 400 ? String(status) : undefined);
}
