import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Refusal } from './refusal.ts';
import type { Answer } from './route.ts';

/** How long a caller may take nothing of its answer. */
const STALLED_MS = 30_000;

/**
 * Sends an answer, whole or piece by piece as it comes; Node leaves the body out where HEAD asked. A caller that left,
 * or that does not read, is no error; rejects when the pieces end with one, and the caller sees a broken response.
 */
export async function sendAnswer(response: ServerResponse, given: Answer | Refusal): Promise<void> {
  const { status, headers, body } = given instanceof Refusal ? toErrorAnswer(given) : given;
  const fields = { 'Cache-Control': 'no-store', ...headers };
  response.setTimeout(STALLED_MS, () => response.destroy());
  if (typeof body === 'string' || body instanceof Uint8Array) {
    response.writeHead(status, { ...fields, 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
    return;
  }
  response.writeHead(status, fields);
  response.flushHeaders();
  if (response.req.method === 'HEAD') response.end();
  else await pipeline(body, response).catch(rethrowUnlessLeft);
}

function rethrowUnlessLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
}

function toErrorAnswer(refusal: Refusal): Answer {
  return {
    status: refusal.status,
    headers: {
      'Content-Type': 'application/json',
      ...(refusal.status === 401 ? { 'WWW-Authenticate': 'Bearer realm="spangate admin"' } : {}),
    },
    body: `${refusal.toJson()}\n`,
  };
}
