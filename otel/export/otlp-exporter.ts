import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type EncodedResourceSpans, joinBatch } from '../encode/resource-spans.ts';
import { toShownName } from '../encode/shown-name.ts';
import { toErrorCode } from '../errors.ts';
import type { OtlpOptions } from './otlp-options.ts';
import type { ExportOutcome, RecordExporter } from './record-exporter.ts';
import { parseRetryAfterMs } from './retry.ts';

const compress = promisify(gzip);

/** OTLP/HTTP, "OTLP/HTTP Response": a client may stop reading here. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** A server that sends nothing but informational responses would keep the call open until the deadline. */
const MAX_INFORMATIONAL = 16;

/** The collector's message is logged, but not all of a long one. */
const MAX_MESSAGE_CHARS = 256;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Null if it was larger than MAX_RESPONSE_BYTES. */
  readonly body: Buffer | null;
}

/** A call that ended without an answer and without a system error. */
class UnansweredError extends Error {
  readonly code: 'aborted' | 'timeout' | 'upgraded' | 'closed' | 'informational_only';

  constructor(code: UnansweredError['code']) {
    super(code);
    this.code = code;
  }
}

/**
 * Sends each batch as one POST (OTLP/HTTP, JSON), and reports exactly what came back. The stock exporter repeats calls
 * on its own, ignores partial success, and its time-out is that of an idle socket. Here the deadline covers the whole
 * call, whatever happens on the connection. Redirects are not followed: they count as an answer like any other.
 */
export function createOtlpExporter(
  options: OtlpOptions,
  resourceSpans: EncodedResourceSpans,
): RecordExporter {
  return {
    collector: options,
    async exportBatch(encodedSpans, signal) {
      const end = new AbortController();
      const deadline = setTimeout(() => end.abort(new UnansweredError('timeout')), options.timeoutMs);
      const onAbort = () => end.abort(new UnansweredError('aborted'));
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        if (signal.aborted) return { kind: 'unanswered', code: 'aborted' };
        const body = await toBody(options.compression, joinBatch(resourceSpans, encodedSpans));
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

/** Level 1 takes a quarter of the default's time, for a fifth more bytes. */
async function toBody(compression: OtlpOptions['compression'], json: Buffer): Promise<Buffer> {
  return compression === 'gzip' ? compress(json, { level: constants.Z_BEST_SPEED }) : json;
}

/**
 * Rejects if no complete answer came: with the system's error, or the reason of the signal. In all cases nothing of the
 * call remains, except a connection that can be reused.
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
      // The status of a failure is enough without its body; a success without its body may be a partial one.
      if (head !== undefined && !isTaken(head.status)) resolve({ ...head, body: null });
      else reject(error);
    }
    // Not the `signal` option of the request: after an upgrade has taken its socket, it ignores that.
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
        // A 101 without an Upgrade field arrives here.
        if (status < 200) return fail(new UnansweredError('upgraded'));
        head = { status, headers };
        readBody(response).then((bytes) => {
          // A server that answers before it has read the whole body may never read the rest.
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

/**
 * Parses an ExportTraceServiceResponse in JSON (opentelemetry-proto, trace_service.proto): how many spans were rejected,
 * and why. Any other body means that all spans were accepted.
 */
export function toPartialSuccess(body: Buffer): {
  readonly rejectedCount: number;
  readonly message: string | undefined;
} {
  const partialSuccess = member(parseJson(body), 'partialSuccess');
  // An int64 is a string in JSON, but decoders must also accept a number.
  const rejectedCount = Math.trunc(Number(member(partialSuccess, 'rejectedSpans') ?? 0));
  return {
    rejectedCount: Number.isSafeInteger(rejectedCount) ? rejectedCount : 0,
    message: toMessage(member(partialSuccess, 'errorMessage')),
  };
}

/** The message of a google.rpc.Status, which is the body of a collector's failure. */
export function toCollectorMessage(body: Buffer | null): string | undefined {
  return body === null ? undefined : toMessage(member(parseJson(body), 'message'));
}

function toMessage(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? toShownName(value, MAX_MESSAGE_CHARS) : undefined;
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}
