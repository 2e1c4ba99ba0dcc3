import { z } from 'zod';
import { toErrorJson } from '#wire';

/** Every error of the admin API, with its status and message. */
export const ADMIN_ERRORS = {
  invalid_request: {
    status: 400,
    message: 'A query parameter, or a member of the body, has an invalid value.',
  },
  bad_request: { status: 400, message: 'The request is not valid HTTP/1.1.' },
  unauthorized: {
    status: 401,
    message:
      'The bearer token is missing or wrong: send `Authorization: Bearer <token>`. A GET needs no more than the token ' +
      'in SVC_READ_TOKEN, a drain that in SVC_OPERATOR_TOKEN, a reload that in SVC_ADMIN_TOKEN.',
  },
  admin_disabled: {
    status: 403,
    message:
      'The admin API is off: no token is set. Set SVC_READ_TOKEN for GETs, SVC_OPERATOR_TOKEN for drains too, or ' +
      'SVC_ADMIN_TOKEN for every call, and restart the gateway.',
  },
  read_only_token: { status: 403, message: 'This token (SVC_READ_TOKEN) only reads.' },
  admin_token_required: {
    status: 403,
    message: 'This token (SVC_OPERATOR_TOKEN) only reads, and steers replicas, shadows and rollouts.',
  },
  drain_token: {
    status: 403,
    message: 'This token (SVC_DRAIN_TOKEN) only drains and undrains the replicas that it names.',
  },
  token_required: {
    status: 403,
    message: 'A session that a link has opened makes no further links: call with the token itself.',
  },
  not_found: { status: 404, message: 'No such path or method on the admin API: see GET /openapi.json.' },
  record_not_found: { status: 404, message: 'No record with this id is in the history of this gateway.' },
  history_off: { status: 404, message: 'This gateway keeps no history: `history` is off.' },
  no_statement_key: { status: 404, message: 'This gateway has no key for statements: set `statement_key`.' },
  replica_not_found: { status: 404, message: 'No replica has this name.' },
  selector_matches_nothing: { status: 404, message: 'No replica is what the selector says.' },
  rollout_not_found: { status: 404, message: 'This gateway knows no rollout with this id.' },
  gateway_not_found: { status: 404, message: 'No gateway of the fleet has this name.' },
  method_not_allowed: { status: 405, message: 'The path does not take this method.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  gateway_alive: { status: 409, message: 'The gateway is running: stop it first.' },
  last_replica: {
    status: 409,
    message: 'Nothing was drained: some models would be left without a replica that answers.',
  },
  rollout_conflict: { status: 409, message: 'Another rollout is at work on some of these replicas.' },
  rollout_driven: { status: 409, message: 'Somebody else drives this rollout.' },
  rollout_taken_over: { status: 409, message: 'This rollout has gone on elsewhere.' },
  rollout_over: { status: 409, message: 'This rollout is over.' },
  drained_by_other: {
    status: 409,
    message: 'Somebody else drained this replica: only an operator can undrain it.',
  },
  request_too_large: {
    status: 413,
    message: 'The body is too large: a call takes at most 64 KiB, and most take none.',
  },
  host_not_allowed: {
    status: 421,
    message:
      'The admin API does not know the name in `Host`: add it to `gateway.admin_hosts`, or use the IP address.',
  },
  too_many_wrong_tokens: {
    status: 429,
    message: 'Too many wrong tokens came from this address: try again later.',
  },
  headers_too_large: { status: 431, message: 'The request headers are larger than `limits.headers`.' },
  too_many_waits: {
    status: 503,
    message:
      'Too many calls are waiting for a drain: nothing was done. Call without `wait` and poll instead.',
  },
  fleet_unreachable: {
    status: 503,
    message:
      'The shared state has not been readable for long enough to tell which gateways have vanished: try again in a few seconds.',
  },
  history_unavailable: { status: 503, message: 'The history of this gateway does not answer.' },
  groups_overlap: { status: 422, message: 'A replica cannot be compared with itself.' },
  shadows_mixed: {
    status: 422,
    message:
      'A shadow is compared with replicas that serve: the candidate must be shadows alone, and no shadow be in the baseline.',
  },
  models_differ: {
    status: 422,
    message: 'No model of the candidate is served by the baseline: there are no like requests to compare.',
  },
  no_pods: {
    status: 422,
    message: 'No replica is a pod: none comes from a Service with `kubernetes`, so there are no labels.',
  },
  pods_not_readable: { status: 503, message: 'The API server of Kubernetes did not list the pods.' },
  invalid_config: { status: 422, message: 'The configuration was rejected: nothing has changed.' },
  internal_error: { status: 500, message: 'The admin API failed; see the log.' },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>;

/** The stable code of an error. */
export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/** The body of an error. Its code is one of the table's; each route lists the codes that it may return. */
export const errorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum(['invalid_request_error', 'server_error']),
      param: z.string().nullable().describe('For `invalid_request`: the invalid parameter.'),
      code: z.string().describe('Stable: programs may rely on it.'),
    }),
  })
  .meta({ id: 'Error' });

interface AdminErrorDetails {
  readonly param?: string;
  readonly message?: string;
  readonly allow?: string;
}

/**
 * An error that a call is answered with. `message` replaces the one in the table. What it repeats of the call went through
 * `toShownText`. `allow`: the methods that the path takes.
 */
export class AdminError {
  readonly code: AdminErrorCode;
  readonly allow: string | undefined;
  readonly #details: { readonly param?: string; readonly message?: string };

  constructor(code: AdminErrorCode, { allow, ...details }: AdminErrorDetails = {}) {
    this.code = code;
    this.allow = allow;
    this.#details = details;
  }

  get status(): number {
    return ADMIN_ERRORS[this.code].status;
  }

  /** The error as JSON, in the same shape as on the client-facing listener. */
  toJson(): string {
    return toErrorJson({ code: this.code, ...ADMIN_ERRORS[this.code], ...this.#details });
  }
}
