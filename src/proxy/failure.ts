import type { Admission } from '#access/limits';
import { toErrorJson, toShownText } from '#wire';
import type { RefusedName } from './request/inspection/member-names.ts';

/** Why a request did not succeed. Clients, records and logs use the same codes. */
export type FailureCode = keyof typeof FAILURES;

interface FailureFacts {
  readonly status: number;
  readonly message: string;
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  /** The value of WWW-Authenticate (RFC 9110 11.6.1). */
  readonly challenge?: string;
}

/**
 * One row per code. No message names a replica's address. Of the request they repeat its path or model alone, by
 * `toShownText`.
 */
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
  limits_unavailable: {
    status: 503,
    message: 'What the tenant may use cannot be counted at the moment.',
    retryAfterSeconds: 1,
  },
  /** The answer says which limit it is, and whose. */
  rate_limit_exceeded: {
    status: 429,
    message: 'The client of the API key, or its tenant, has reached a limit.',
  },
  model_not_found: { status: 404, message: 'No replica serves the requested model.', param: 'model' },
  previous_response_not_found: {
    status: 404,
    message: 'The response that `previous_response_id` names is not known, or belongs to another client.',
    param: 'previous_response_id',
  },
  invalid_json: { status: 400, message: 'The request body is not a JSON object.' },
  /** The answer says which member, and why: see `toMemberFacts`. */
  ambiguous_member: { status: 400, message: 'Engines could read a member of the request body differently.' },
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

type LimitRefusal = NonNullable<Admission['refusal']>;

/** What clients are told of each limit. The types are those of OpenAI's own answers with 429. */
const LIMIT_FACTS: Readonly<Record<LimitRefusal['key'], { readonly type: string; readonly counts: string }>> =
  {
    requests_per_minute: { type: 'requests', counts: 'requests per minute' },
    tokens_per_minute: { type: 'tokens', counts: 'tokens per minute' },
    max_inflight: { type: 'requests', counts: 'requests at the same time' },
  };

/** What clients are told of a member that engines could read differently: its own name, never what they wrote. */
function toMemberMessage({ member, doubt }: RefusedName): string {
  return doubt === 'lookalike'
    ? `The request body has a member whose name differs from \`${member}\` only in case: engines disagree about which one counts.`
    : `The request body has \`${member}\` more than once in an object: engines disagree about which one counts.`;
}

const OWNERS = { client: 'The client of the API key', tenant: 'The tenant of the request' } as const;

/** What an answer may say beyond its code. */
export interface FailureDetails {
  /** The limit that refused the request. */
  readonly refusal?: LimitRefusal | null;
  /** The member for which the request was refused. */
  readonly name?: RefusedName | null;
  /** What the client calls the model. */
  readonly modelName?: string | null;
  /** Replaces the message of the code. */
  readonly message?: string;
}

const factsOf = (code: FailureCode): FailureFacts => FAILURES[code];

/** The HTTP status of a failure. */
export function statusOf(code: FailureCode): number {
  return FAILURES[code].status;
}

/** What a failure's answer says, in English. */
export function messageOf(
  code: FailureCode,
  { refusal, name, modelName, message }: FailureDetails = {},
): string {
  if (message !== undefined) return message;
  if (code === 'ambiguous_member' && name) return toMemberMessage(name);
  if (code === 'rate_limit_exceeded' && refusal) return toLimitMessage(refusal);
  if (code === 'model_not_found' && modelName)
    return `No replica serves the model ${toShownText(modelName)}.`;
  return FAILURES[code].message;
}

function toLimitMessage({ key, owner, limit, retryAfterSeconds }: LimitRefusal): string {
  const room =
    key === 'max_inflight'
      ? 'There is room when one of them has ended.'
      : `There is room again in ${retryAfterSeconds} s.`;
  return `${OWNERS[owner]} has reached its limit of ${LIMIT_FACTS[key].counts} (${limit}). ${room}`;
}

/** The field lines that the answer to a failure has of its own; often none. */
export function fieldLinesOf(code: FailureCode): string {
  const { retryAfterSeconds, challenge } = factsOf(code);
  return (
    (retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`) +
    (challenge === undefined ? '' : `WWW-Authenticate: ${challenge}\r\n`)
  );
}

/** Makes the body of the answer to a failure, in the shape of the request's API. */
export type ToErrorBody = (code: FailureCode, details?: FailureDetails) => string;

/** The error object of a failure, as JSON text. */
export function toFailureJson(code: FailureCode, details: FailureDetails = {}): string {
  const { refusal, name } = details;
  const type = code === 'rate_limit_exceeded' && refusal ? { type: LIMIT_FACTS[refusal.key].type } : {};
  const ofMember = code === 'ambiguous_member' && name ? { param: name.member } : {};
  return toErrorJson({ code, ...factsOf(code), ...type, ...ofMember, message: messageOf(code, details) });
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

/** A request that is refused for the name of a member of its body. */
export class AmbiguousMember extends Failure {
  readonly refused: RefusedName;

  constructor(refused: RefusedName) {
    super('ambiguous_member');
    this.refused = refused;
  }
}
