/** The content of an error response, in the shape of the OpenAI API that client libraries understand. */
export interface ErrorFacts {
  readonly status: number;
  /** Default: `invalid_request_error` for 4xx and `server_error` for 5xx. */
  readonly type?: string;
  readonly code: string;
  /** It never names a replica's address. What it repeats of the request went through `toShownText`. */
  readonly message: string;
  readonly param?: string | undefined;
}

/** The JSON text `{"error":{"message","type","param","code"}}`. */
export function toErrorJson({ status, code, message, param, ...given }: ErrorFacts): string {
  const { type = status < 500 ? 'invalid_request_error' : 'server_error' } = given;
  return JSON.stringify({ error: { message, type, param: param ?? null, code } });
}
