import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import { AdminError } from '../admin-error.ts';
import type { EncodedResponse } from '../route.ts';
import { toSecurityHeaders } from './security-headers.ts';

/** How long a client may read nothing of its response before the connection is closed. */
const STALLED_MS = 30_000;

/**
 * Sends a response, whole or piece by piece. Node leaves out the body of a response to HEAD. A client that disconnects
 * or does not read is not an error. Rejects if the iterable of pieces fails; the client then sees an incomplete
 * response.
 */
export async function sendResponse(
  response: ServerResponse,
  result: EncodedResponse | AdminError,
): Promise<void> {
  const { status, headers, body } = result instanceof AdminError ? toErrorResponse(result) : result;
  const fields = { ...toSecurityHeaders(response.req.socket instanceof TLSSocket), ...headers };
  response.setTimeout(STALLED_MS, () => response.destroy());
  if (typeof body === 'string' || body instanceof Uint8Array) {
    response.writeHead(status, { ...fields, 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
    return;
  }
  response.writeHead(status, fields);
  response.flushHeaders();
  if (response.req.method === 'HEAD') response.end();
  else await pipeline(body, response).catch(rethrowUnlessDisconnected);
}

function rethrowUnlessDisconnected(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
}

function toErrorResponse(error: AdminError): EncodedResponse {
  return {
    status: error.status,
    headers: {
      'Content-Type': 'application/json',
      ...(error.status === 401 ? { 'WWW-Authenticate': 'Bearer realm="spangate admin"' } : {}),
      ...(error.status === 429 || error.status === 503 ? { 'Retry-After': '1' } : {}),
      ...(error.allow === undefined ? {} : { Allow: error.allow }),
      // Kept connections of those who cannot wait would take the places of all others.
      ...(error.code === 'too_many_waits' ? { Connection: 'close' } : {}),
    },
    body: `${error.toJson()}\n`,
  };
}
