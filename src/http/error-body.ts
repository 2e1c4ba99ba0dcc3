/** What an error answer says: the shape of the OpenAI API, so that every client library understands it. */
export interface ErrorFacts {
  /** 4xx make `invalid_request_error`, 5xx `server_error`. */
  readonly status: number;
  readonly code: string;
  /** A constant: it never names a replica's address or echoes the request. */
  readonly message: string;
  readonly param?: string | undefined;
}

/** The JSON text `{"error":{"message","type","param","code"}}`. */
export function toErrorJson({ status, code, message, param }: ErrorFacts): string {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return JSON.stringify({ error: { message, type, param: param ?? null, code } });
}
