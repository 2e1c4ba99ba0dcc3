import { type ErrorFacts, toErrorJson } from '#wire';

/** An error response that the connection sends itself, because there is no request to handle. */
export interface ConnectionError extends ErrorFacts {
  readonly reason: string;
}

/** Each is the last response of its connection. */
export const CONNECTION_ERRORS = {
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
  headTooLarge: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    code: 'headers_too_large',
    message: 'The request headers are too large.',
  },
} as const satisfies Record<string, ConnectionError>;

/** Returns the complete response as text. */
export function toErrorResponse(error: ConnectionError): string {
  const body = toErrorJson(error);
  return (
    `HTTP/1.1 ${error.status} ${error.reason}\r\nConnection: close\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
