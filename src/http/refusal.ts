import { type ErrorFacts, toErrorJson } from './error-body.ts';

/** Why a connection answers by itself, where there is no request to handle. */
export interface Refusal extends ErrorFacts {
  readonly reason: string;
}

/** Each is the last answer of its connection. */
export const REFUSALS = {
  connect: { status: 404, reason: 'Not Found', code: 'not_found', message: 'No such path or method here.' },
  malformed: {
    status: 400,
    reason: 'Bad Request',
    code: 'bad_request',
    message: 'The request is not valid HTTP.',
  },
  slow: {
    status: 408,
    reason: 'Request Timeout',
    code: 'request_timeout',
    message: 'The request did not arrive in time.',
  },
  tooLarge: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    code: 'headers_too_large',
    message: 'The request headers are too large.',
  },
} as const satisfies Record<string, Refusal>;

/** The whole answer, as text. */
export function toRefusalText(refusal: Refusal): string {
  const body = toErrorJson(refusal);
  return (
    `HTTP/1.1 ${refusal.status} ${refusal.reason}\r\nConnection: close\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
