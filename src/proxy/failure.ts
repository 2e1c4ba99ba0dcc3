import type { LimitKind } from '../client-limits/admission.ts';
import { toErrorJson } from '../http/error-body.ts';

/** Why a request did not succeed. Clients, records and logs use the same codes. */
export type FailureCode = keyof typeof FAILURES;

interface FailureFacts {
  readonly status: number;
  readonly message: string;
  readonly param?: 'model' | 'stream_options';
  readonly retryAfterSeconds?: number;
  /** The value of WWW-Authenticate (RFC 9110 11.6.1). */
  readonly challenge?: string;
}

/** One row per code. Messages are constant: they never name a replica's address or echo the request. */
const FAILURES = {
  not_found: { status: 404, message: 'No such path or method on this gateway.' },
  invalid_api_key: {
    status: 401,
    message: 'The API key is missing, is not valid, or has expired.',
    challenge: 'Bearer',
  },
  keys_unavailable: {
    status: 503,
    message: 'The keys that verify tokens cannot be read at the moment.',
    retryAfterSeconds: 5,
  },
  /** The answer says which limit: see `LIMIT_FACTS`. */
  rate_limit_exceeded: { status: 429, message: 'The client of the API key has reached a limit.' },
  model_not_found: { status: 404, message: 'No replica serves the requested model.', param: 'model' },
  invalid_json: { status: 400, message: 'The request body is not a JSON object.' },
  large_stream_options: {
    status: 400,
    message:
      'The `stream_options` of the request body have more than 64 KiB, or come too often: 256 times, counting `include_usage` in them.',
    param: 'stream_options',
  },
  invalid_form: {
    status: 400,
    message: 'The request body is not a form (multipart/form-data) that can be read, or has two models.',
  },
  late_model: {
    status: 400,
    message: 'The form must name its model earlier: send the part `model` before the file.',
    param: 'model',
  },
  missing_model: { status: 400, message: 'The request body must name a model, as a string.', param: 'model' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  request_too_large: { status: 413, message: 'The request body is too large.' },
  unsupported_encoding: { status: 415, message: 'A Content-Encoding of the request body is not supported.' },
  all_replicas_drained: {
    status: 503,
    message: 'Every replica that serves the requested model is drained.',
    retryAfterSeconds: 1,
  },
  overloaded: { status: 503, message: 'The gateway holds as many requests as it can.', retryAfterSeconds: 1 },
  loop_detected: {
    status: 508,
    message: 'The request has come back to this gateway: the url of one of its replicas leads back to it.',
  },
  shutting_down: { status: 503, message: 'The gateway is shutting down.', retryAfterSeconds: 1 },
  no_replica_reachable: {
    status: 502,
    message: 'No replica that serves the requested model can be reached.',
  },
  upstream_failed: { status: 502, message: 'The replica broke off the exchange.' },
  upstream_timeout: { status: 504, message: 'The replica did not answer in time.' },
} as const satisfies Record<string, FailureFacts>;

/** What clients are told of each limit. The types are those of OpenAI's own answers with 429. */
const LIMIT_FACTS: Readonly<Record<LimitKind, { readonly type: string; readonly message: string }>> = {
  requests: {
    type: 'requests',
    message: 'The client of the API key has reached its limit of requests per minute.',
  },
  tokens: {
    type: 'tokens',
    message: 'The client of the API key has reached its limit of tokens per minute.',
  },
  inflight: {
    type: 'requests',
    message: 'The client of the API key has reached its limit of requests at the same time.',
  },
};

const factsOf = (code: FailureCode): FailureFacts => FAILURES[code];

/** The HTTP status of a failure. */
export function statusOf(code: FailureCode): number {
  return FAILURES[code].status;
}

/** What a failure's answer says, in English. */
export function messageOf(code: FailureCode, limit: LimitKind | null = null): string {
  return code === 'rate_limit_exceeded' && limit !== null
    ? LIMIT_FACTS[limit].message
    : FAILURES[code].message;
}

/** The field lines that the answer to a failure has of its own; often none. */
export function fieldLinesOf(code: FailureCode): string {
  const { retryAfterSeconds, challenge } = factsOf(code);
  return (
    (retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`) +
    (challenge === undefined ? '' : `WWW-Authenticate: ${challenge}\r\n`)
  );
}

/** Makes the body of the answer to a failure, in the shape of the request's API. `limit`: which one was reached, if any. */
export type ToErrorBody = (code: FailureCode, limit?: LimitKind | null) => string;

/** The error object of a failure, as JSON text. `limit`: the one that refused the request, if one did. */
export function toFailureJson(code: FailureCode, limit: LimitKind | null = null): string {
  const ofLimit = code === 'rate_limit_exceeded' && limit !== null ? LIMIT_FACTS[limit] : {};
  return toErrorJson({ code, ...factsOf(code), ...ofLimit });
}

/** A request that cannot go on. `cause` is for logs, is optional, and never holds request text. */
export class Failure extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, cause?: unknown) {
    super(code, cause === undefined ? undefined : { cause });
    this.name = 'Failure';
    this.code = code;
  }
}
