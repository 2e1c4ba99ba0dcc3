/** Why a request is refused; the dialect of the engine words it. `field` is the name of a member of the body. */
export type Failure =
  | { readonly code: 'not_found' }
  | { readonly code: 'method_not_allowed' }
  | { readonly code: 'invalid_json' }
  | { readonly code: 'missing_field'; readonly field: string }
  | { readonly code: 'wrong_value'; readonly field: string; readonly expected: string }
  | { readonly code: 'unknown_model'; readonly model: string }
  | { readonly code: 'too_long'; readonly promptTokens: number }
  | { readonly code: 'too_large' }
  | { readonly code: 'loading' }
  | { readonly code: 'injected' };

/** HTTP status of each failure, the same for all engines but for `method_not_allowed` (llama.cpp: 404). */
export const STATUS_OF: Readonly<Record<Failure['code'], number>> = {
  not_found: 404,
  method_not_allowed: 405,
  invalid_json: 400,
  missing_field: 400,
  wrong_value: 400,
  unknown_model: 404,
  too_long: 400,
  too_large: 413,
  loading: 503,
  injected: 500,
};

/** Thrown while a request is read; the server answers with the error of the engine. */
export class Refusal extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.code);
    this.name = 'Refusal';
    this.failure = failure;
  }
}
