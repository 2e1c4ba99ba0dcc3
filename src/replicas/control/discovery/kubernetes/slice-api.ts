import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client, type Dispatcher } from 'undici';
import type { KubernetesSource } from '../../../../config/kubernetes-source.ts';
import { parseSliceList, parseWatchEvent, type SliceList, type WatchEvent } from './endpoint-slice.ts';
import { LongLineError, readLines } from './json-lines.ts';

/** Why the API server could not be asked, or what was wrong with its answer. */
export type SliceFailureCode =
  /** The files of the service account cannot be read. */
  | 'no_service_account'
  | 'unreachable'
  /** 401 or 403: the token is not accepted, or may not read EndpointSlices. */
  | 'refused'
  /** 410: the position is too old, so the list must be read anew. */
  | 'gone'
  | 'bad_status'
  | 'malformed_answer'
  | 'answer_too_large'
  /** The connection broke, or was silent for too long. */
  | 'cut';

/** A call of the API server failed. `status`: that of its answer, if there was one. */
export class SliceError extends Error {
  readonly code: SliceFailureCode;
  readonly status: number | null;

  constructor(
    code: SliceFailureCode,
    { status = null, cause }: { status?: number | null; cause?: unknown } = {},
  ) {
    super(code, { cause });
    this.name = 'SliceError';
    this.code = code;
    this.status = status;
  }
}

/** For connecting, the headers, and a whole list. */
const CONNECT_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 20_000;
/** The API server is asked to end a watch after this time. A connection that died silently is noticed by then. */
const WATCH_SECONDS = 60;
const WATCH_TIMEOUT_MS = (WATCH_SECONDS + 15) * 1_000;

/** A slice has up to 1,000 endpoints, and an object up to 1.5 MiB. */
const MAX_LIST_BYTES = 16 * 1024 ** 2;
const MAX_EVENT_BYTES = 4 * 1024 ** 2;
const MAX_ACCOUNT_BYTES = 1024 ** 2;

/** The EndpointSlices of one Service at the API server. */
export interface SliceApi {
  /** Rejects with a SliceError. */
  list(signal: AbortSignal): Promise<SliceList>;
  /**
   * The changes after a position, until the API server ends the watch. `onOpen`: it has accepted the watch. Throws a
   * SliceError.
   */
  watch(resourceVersion: string, signal: AbortSignal, onOpen: () => void): AsyncIterable<WatchEvent>;
}

/**
 * Creates the access. Each call reads the token and the authority again, because Kubernetes replaces both, and has a
 * connection of its own.
 */
export function createSliceApi(source: KubernetesSource): SliceApi {
  return {
    async list(signal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
      await using call = await open(source, {}, limited);
      const list = parseSliceList(await readText(call.body));
      if (list === null) throw new SliceError('malformed_answer');
      return list;
    },

    async *watch(resourceVersion, signal, onOpen) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(WATCH_TIMEOUT_MS)]);
      const query = {
        ...{ watch: 'true', allowWatchBookmarks: 'true', resourceVersion },
        timeoutSeconds: String(WATCH_SECONDS),
      };
      await using call = await open(source, query, limited);
      onOpen();
      for await (const line of readLines(withCodes(call.body), MAX_EVENT_BYTES)) {
        const event = parseWatchEvent(line);
        if (event === null) throw new SliceError('malformed_answer');
        if (event.type === 'error') throw toStatusError(event.code);
        yield event;
      }
    },
  };
}

interface OpenCall extends AsyncDisposable {
  readonly body: AsyncIterable<Uint8Array>;
}

async function open(
  source: KubernetesSource,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<OpenCall> {
  const { origin, pathname, protocol } = new URL(source.apiServer);
  const { namespace, token, ca } = await readAccount(source, protocol === 'https:');
  const search = new URLSearchParams({
    labelSelector: `kubernetes.io/service-name=${source.service}`,
    ...query,
  });
  const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices?${search}`;
  let client: Client;
  try {
    client = new Client(origin, {
      connect: { timeout: CONNECT_TIMEOUT_MS, ...(ca === null ? {} : { ca }) },
      ...{ headersTimeout: HEADERS_TIMEOUT_MS, bodyTimeout: 0 },
    });
  } catch (error) {
    throw new SliceError('no_service_account', { cause: error });
  }
  try {
    const response = await client.request({
      path: pathname.replace(/\/$/, '') + path,
      ...{ method: 'GET', signal, blocking: false },
      headers: {
        accept: 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    });
    if (response.statusCode !== 200) throw toStatusError(response.statusCode);
    return { body: response.body, [Symbol.asyncDispose]: () => destroy(client, response) };
  } catch (error) {
    await client.destroy();
    throw error instanceof SliceError ? error : new SliceError('unreachable', { cause: error });
  }
}

async function destroy(client: Client, { body }: Dispatcher.ResponseData): Promise<void> {
  // What is left of the body fails with its connection; nobody reads it.
  body.on('error', () => undefined);
  await client.destroy();
}

function toStatusError(status: number): SliceError {
  const code =
    status === 410 ? 'gone' : status === 401 || status === 403 ? 'refused' : ('bad_status' as const);
  return new SliceError(code, { status });
}

/** The token is not sent without encryption. */
async function readAccount({ namespace, tokenFile, caFile }: KubernetesSource, isSecured: boolean) {
  const [given, token, ca] = await Promise.all([
    namespace ?? readSmall(join(dirname(tokenFile), 'namespace')),
    isSecured ? readSmall(tokenFile) : null,
    isSecured ? readSmall(caFile) : null,
  ]);
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) throw new SliceError('no_service_account');
  return { namespace: given, token, ca };
}

async function readSmall(path: string): Promise<string> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new SliceError('no_service_account', { cause: error });
  }
  if (text === '' || text.length > MAX_ACCOUNT_BYTES) throw new SliceError('no_service_account');
  return text;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of withCodes(body)) {
    size += chunk.length;
    if (size > MAX_LIST_BYTES) throw new SliceError('answer_too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The failures of a connection as those of a call. */
async function* withCodes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw new SliceError('cut', { cause: error });
  }
}

/** The failure of a call, whatever was thrown. */
export function toSliceError(error: unknown): SliceError {
  if (error instanceof SliceError) return error;
  return new SliceError(error instanceof LongLineError ? 'answer_too_large' : 'unreachable', {
    cause: error,
  });
}
