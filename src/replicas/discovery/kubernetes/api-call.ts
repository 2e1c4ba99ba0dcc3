import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client, type Dispatcher } from 'undici';
import type { KubernetesSource } from '../servers.ts';
import { LongLineError } from './json-lines.ts';

/** Why the API server could not be asked, or what was wrong with its answer. */
export type ApiFailureCode =
  /** The files of the service account cannot be read. */
  | 'no_service_account'
  | 'unreachable'
  /** 401 or 403: the token is not accepted, or its service account may not do this. */
  | 'refused'
  /** 410: the position is too old, so the list must be read anew. */
  | 'gone'
  | 'bad_status'
  | 'malformed_answer'
  | 'answer_too_large'
  /** The connection broke, or was silent for too long. */
  | 'cut';

interface ApiErrorDetails {
  readonly status?: number | null;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** A call of the API server failed. */
export class ApiError extends Error {
  readonly code: ApiFailureCode;
  /** That of its answer, if there was one. */
  readonly status: number | null;
  /** How long it wants not to be asked again; 0: it did not say. */
  readonly retryAfterMs: number;

  constructor(code: ApiFailureCode, { status = null, retryAfterMs = 0, cause }: ApiErrorDetails = {}) {
    super(code, { cause });
    this.name = 'ApiError';
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** The system's code for the cause, such as ECONNREFUSED or ERR_TLS_CERT_ALTNAME_INVALID; null: there is none. */
  get reason(): string | null {
    const { cause } = this;
    return cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  }
}

const CONNECT_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 10_000;
const MAX_ACCOUNT_BYTES = 1024 ** 2;
/** More is not waited for because the API server says so. */
const MAX_RETRY_AFTER_S = 60;

/**
 * What to ask. `path`: behind that of `api_server`, with its query. `patch`: a strategic merge patch; null: a GET. `accept`:
 * another form of the answer than the plain JSON.
 */
export interface ApiRequest {
  readonly path: (namespace: string) => string;
  readonly accept?: string;
  readonly patch?: object | null;
}

/** An answer whose body is still to be read. Its end closes the connection. */
export interface ApiCall extends AsyncDisposable {
  readonly status: number;
  readonly retryAfterMs: number;
  /** Throws an ApiError where it breaks. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Calls the API server. Each call reads the token and the authority again, because Kubernetes replaces both, and has a
 * connection of its own. Rejects with an ApiError if there is no answer.
 */
export async function callApi(
  source: KubernetesSource,
  { path, patch = null, accept = 'application/json' }: ApiRequest,
  signal: AbortSignal,
): Promise<ApiCall> {
  const { origin, pathname, protocol } = new URL(source.apiServer);
  const { namespace, token, ca } = await readAccount(source, protocol === 'https:');
  let client: Client;
  try {
    client = new Client(origin, {
      connect: { timeout: CONNECT_TIMEOUT_MS, ...(ca === null ? {} : { ca }) },
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: 0,
    });
  } catch (error) {
    throw new ApiError('no_service_account', { cause: error });
  }
  try {
    const response = await client.request({
      path: pathname.replace(/\/$/, '') + path(encodeURIComponent(namespace)),
      signal,
      blocking: false,
      ...(patch === null ? { method: 'GET' } : { method: 'PATCH', body: JSON.stringify(patch) }),
      headers: {
        accept,
        ...(patch === null ? {} : { 'content-type': 'application/strategic-merge-patch+json' }),
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    });
    return {
      status: response.statusCode,
      retryAfterMs: toRetryAfterMs(response.headers['retry-after']),
      body: withCodes(response.body),
      [Symbol.asyncDispose]: () => destroy(client, response),
    };
  } catch (error) {
    await client.destroy();
    throw new ApiError('unreachable', { cause: error });
  }
}

async function destroy(client: Client, { body }: Dispatcher.ResponseData): Promise<void> {
  // What is left of the body fails with its connection; nobody reads it.
  body.on('error', () => undefined);
  await client.destroy();
}

/** The failure that an answer with another status than 200 stands for. */
export function toStatusError({ status, retryAfterMs }: Pick<ApiCall, 'status' | 'retryAfterMs'>): ApiError {
  const code =
    status === 410 ? 'gone' : status === 401 || status === 403 ? 'refused' : ('bad_status' as const);
  return new ApiError(code, { status, retryAfterMs });
}

/** In seconds, which is how the API server writes it. */
function toRetryAfterMs(value: string | string[] | undefined): number {
  const seconds = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : 0;
  return Math.min(seconds, MAX_RETRY_AFTER_S) * 1_000;
}

/** The token is not sent without encryption. */
async function readAccount({ namespace, tokenFile, caFile }: KubernetesSource, isSecured: boolean) {
  const [given, token, ca] = await Promise.all([
    namespace ?? readSmall(join(dirname(tokenFile), 'namespace')),
    isSecured ? readSmall(tokenFile) : null,
    isSecured ? readSmall(caFile) : null,
  ]);
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) throw new ApiError('no_service_account');
  return { namespace: given, token, ca };
}

async function readSmall(path: string): Promise<string> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new ApiError('no_service_account', { cause: error });
  }
  if (text === '' || text.length > MAX_ACCOUNT_BYTES) throw new ApiError('no_service_account');
  return text;
}

/** The whole body as UTF-8. Rejects with an ApiError if it is longer than `maxBytes`, or breaks. */
export async function readText(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new ApiError('answer_too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The failures of a connection as those of a call. */
async function* withCodes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw new ApiError('cut', { cause: error });
  }
}

/** The failure of a call, whatever was thrown. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(error instanceof LongLineError ? 'answer_too_large' : 'unreachable', {
    cause: error,
  });
}
