import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type Envelope, joinBatch } from '../encode/envelope.ts';
import { toErrorCode } from '../system-error.ts';
import type { ExportOutcome } from './export-outcome.ts';
import type { OtlpOptions } from './otlp-options.ts';
import { toCollectorMessage, toPartialSuccess } from './otlp-response.ts';
import { parseRetryAfterMs } from './retry.ts';
import type { Sink } from './sink.ts';

const compress = promisify(gzip);

/** OTLP/HTTP, "OTLP/HTTP Response": a client may refuse to read more. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Null if it was larger than MAX_RESPONSE_BYTES. */
  readonly body: Buffer | null;
}

/** A collector that only ever announces an answer would keep us reading until the deadline. */
const MAX_INFORMATIONAL = 16;

/** A call that ended without an answer and without an error of the system. */
class UnansweredError extends Error {
  readonly code: 'aborted' | 'timeout' | 'upgraded' | 'closed' | 'informational_only';

  constructor(code: UnansweredError['code']) {
    super(code);
    this.code = code;
  }
}

/**
 * Sends a batch as one POST (OTLP/HTTP, JSON), and tells exactly what came back. The stock exporter repeats
 * calls unseen, swallows partial success, and its time-out is that of an idle socket; here the deadline is over
 * the whole call, whatever the connection tells or does not tell. Redirects are not followed: an answer like any
 * other.
 */
export function createOtlpSink(options: OtlpOptions, envelope: Envelope): Sink {
  return {
    collector: options,
    async exportBatch(lines, signal) {
      const end = new AbortController();
      const deadline = setTimeout(() => end.abort(new UnansweredError('timeout')), options.timeoutMs);
      const onAbort = () => end.abort(new UnansweredError('aborted'));
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        if (signal.aborted) return { kind: 'unanswered', code: 'aborted' };
        const body = await toBody(options.compression, joinBatch(envelope, lines));
        return toOutcome(await post(options, body, end.signal));
      } catch (error) {
        return { kind: 'unanswered', code: toErrorCode(error, 'network') };
      } finally {
        clearTimeout(deadline);
        signal.removeEventListener('abort', onAbort);
      }
    },
    close: () => options.agent.destroy(),
  };
}

/** Level 1: a quarter of the time of the default, for a fifth more bytes. */
async function toBody(compression: OtlpOptions['compression'], json: Buffer): Promise<Buffer> {
  return compression === 'gzip' ? compress(json, { level: constants.Z_BEST_SPEED }) : json;
}

/**
 * Rejects if no complete answer came: with the system's error, or the reason of the signal. Either way nothing of the
 * call is left, but for a connection that can be used again.
 */
function post(options: OtlpOptions, body: Buffer, signal: AbortSignal): Promise<Answer> {
  const request = options.url.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = {
    ...options.headers,
    ...(options.compression === 'gzip' ? { 'Content-Encoding': 'gzip' } : {}),
    'Content-Length': body.length,
  };
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const call = request(options.url, { method: 'POST', headers, agent: options.agent });
    let head: Pick<Answer, 'status' | 'headers'> | undefined;
    let informationalCount = 0;

    function fail(error: unknown): void {
      call.destroy();
      // A status that says no says it without its body; a yes without one may be a partial no.
      if (head !== undefined && !isTaken(head.status)) resolve({ ...head, body: null });
      else reject(error);
    }
    // Not the request's own option: one whose socket was taken away by an upgrade does not heed it.
    signal.addEventListener('abort', () => fail(signal.reason), { once: true });

    call
      .on('information', () => {
        informationalCount += 1;
        if (informationalCount > MAX_INFORMATIONAL) fail(new UnansweredError('informational_only'));
      })
      .on('upgrade', (_response, socket) => {
        socket.destroy();
        fail(new UnansweredError('upgraded'));
      })
      .on('response', (response) => {
        const { statusCode: status = 0, headers } = response;
        // A 101 that does not say what it upgrades to comes this way.
        if (status < 200) return fail(new UnansweredError('upgraded'));
        head = { status, headers };
        readBody(response).then((bytes) => {
          // One that answers before it has read everything may never read the rest.
          if (!call.writableFinished) call.destroy();
          resolve({ status, headers, body: bytes });
        }, fail);
      })
      .on('error', fail)
      .on('close', () => {
        if (head === undefined) fail(new UnansweredError('closed'));
      })
      .end(body);
  });
}

async function readBody(response: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_RESPONSE_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function toOutcome({ status, headers, body }: Answer): ExportOutcome {
  if (!isTaken(status)) {
    const retryAfterMs = parseRetryAfterMs(headers['retry-after'], Date.now());
    return { kind: 'answered', status, retryAfterMs, message: toCollectorMessage(body) };
  }
  return body === null ? { kind: 'oversized' } : { kind: 'taken', ...toPartialSuccess(body) };
}

const isTaken = (status: number): boolean => status >= 200 && status <= 299;
