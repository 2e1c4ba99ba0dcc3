import { z } from 'zod';
import { toErrorJson } from '../http/error-body.ts';

/** Every way in which the admin API says no, with its status and what it says. */
export const REFUSALS = {
  invalid_request: { status: 400, message: 'A parameter of the query has a value that it cannot have.' },
  bad_request: { status: 400, message: 'The request is not valid HTTP.' },
  unauthorized: { status: 401, message: 'The bearer token is missing or wrong.' },
  admin_disabled: { status: 403, message: 'The admin API is off: no admin token is configured.' },
  not_found: { status: 404, message: 'No such path or method on the admin API.' },
  replica_not_found: { status: 404, message: 'No replica has this name.' },
  gateway_not_found: { status: 404, message: 'No gateway of the fleet has this name.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  gateway_alive: { status: 409, message: 'The gateway runs: stop it first.' },
  last_replica: {
    status: 409,
    message: 'Nothing was drained: some models would be left without a replica that answers.',
  },
  request_too_large: { status: 413, message: 'No call has a body: this one is too large to be ignored.' },
  headers_too_large: { status: 431, message: 'The request headers are too large.' },
  too_many_waits: {
    status: 503,
    message: 'Too many calls wait for a drain already: nothing was done. Ask without `wait`, and look again.',
  },
  fleet_unreachable: {
    status: 503,
    message:
      'The shared state has not been heard for long enough to tell who has vanished: try again in seconds.',
  },
  invalid_config: { status: 422, message: 'The configuration was refused: nothing has changed.' },
  internal_error: { status: 500, message: 'The admin API failed; see the log.' },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>;

/** The stable code of a refusal. */
export type RefusalCode = keyof typeof REFUSALS;

/** What the body of a refusal is. Its codes are the table's; each route says which of them it may give. */
export const errorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum(['invalid_request_error', 'server_error']),
      param: z.string().nullable().describe('The parameter that is wrong, for `invalid_request`.'),
      code: z.string().describe('Stable, for programs.'),
    }),
  })
  .meta({ id: 'Error' });

/** A no. `message` replaces the one of the table; it never echoes the call. */
export class Refusal {
  readonly code: RefusalCode;
  readonly #details: { readonly param?: string; readonly message?: string };

  constructor(code: RefusalCode, details: { readonly param?: string; readonly message?: string } = {}) {
    this.code = code;
    this.#details = details;
  }

  get status(): number {
    return REFUSALS[this.code].status;
  }

  /** The JSON text of the error, in the shape that the client-facing listener has too. */
  toJson(): string {
    return toErrorJson({ code: this.code, ...REFUSALS[this.code], ...this.#details });
  }
}
