import { type FailureCode, type FailureDetails, messageOf, statusOf } from '../../failure.ts';

/** The types of errors by status (Anthropic API reference, "Errors", where 529 is `overloaded_error`). */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
]);

/** The body of an error answer. `code` is the gateway's own, beside what the API defines. */
export function toMessageErrorBody(code: FailureCode, details?: FailureDetails): string {
  const status = statusOf(code);
  const type = ERROR_TYPES.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return JSON.stringify({ type: 'error', error: { type, message: messageOf(code, details), code } });
}

/** The event that ends a stream which broke off. */
export function toMessageErrorEvent(code: FailureCode): string {
  return `event: error\ndata: ${toMessageErrorBody(code)}\n\n`;
}
