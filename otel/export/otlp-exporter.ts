import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { startDeadline, toErrorCode } from '#otel/base';
import { CONTENT_TYPES, type OtlpOptions } from '#otel/collector';
import { type EncodedResourceSpans, joinBatch, joinJsonBatch } from '#otel/otlp';
import { toCollectorMessage, toPartialSuccess } from './collector-answer.ts';
import { convertSpans } from './convert-spans.ts';
import type { ExportOutcome, RecordExporter } from './record-exporter.ts';
import { parseRetryAfterMs } from './retry.ts';

const compress = promisify(gzip);

/** OTLP/HTTP, "OTLP/HTTP Response": a client may stop reading here. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** A server that sends nothing but informational responses would keep the call open until the deadline. */
const MAX_INFORMATIONAL = 16;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Null if it was larger than MAX_RESPONSE_BYTES. */
  readonly body: Buffer | null;
  /** Whether the request was sent to its end. */
  readonly isSent: boolean;
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
 * Sends each batch as one POST (OTLP/HTTP), and reports exactly what came back. The stock exporter repeats calls on its
 * own, ignores partial success, and its time-out is that of an idle socket. Here the deadline covers the whole call,
 * whatever happens on the connection. Redirects are not followed: they count as an answer like any other.
 */
export function createOtlpExporter(
  options: OtlpOptions,
  resourceSpans: EncodedResourceSpans,
): RecordExporter {
  const memory = new BodyMemory();
  const toBytes = (encodedSpans: readonly Uint8Array[]) =>
    toBatch(options.protocol, resourceSpans, encodedSpans, (bytes) => memory.take(bytes));
  return {
    collector: options,
    async exportBatch(encodedSpans, signal) {
      const end = new AbortController();
      // Too early, it would send a batch twice.
      const endDeadline = startDeadline(options.timeoutMs, () => end.abort(new UnansweredError('timeout')));
      const onAbort = () => end.abort(new UnansweredError('aborted'));
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        if (signal.aborted) return { kind: 'unanswered', code: 'aborted' };
        const { bytes, malformedCount } = await toBytes(encodedSpans);
        const body = await compressed(options.compression, bytes);
        const answer = await post(options, await options.headers(), body, end.signal);
        // Of a call that broke off, the system may still read the body.
        if (answer.isSent) memory.giveBack(bytes);
        return toOutcome(answer, CONTENT_TYPES[options.protocol], malformedCount);
      } catch (error) {
        return { kind: 'unanswered', code: toErrorCode(error, 'network') };
      } finally {
        endDeadline();
        signal.removeEventListener('abort', onAbort);
      }
    },
    close: () => options.agent.destroy(),
  };
}

/** The batch as the protocol carries it, without the records that are no spans. */
async function toBatch(
  protocol: OtlpOptions['protocol'],
  resourceSpans: EncodedResourceSpans,
  encodedSpans: readonly Uint8Array[],
  allocate: (bytes: number) => Buffer<ArrayBuffer>,
): Promise<{ readonly bytes: Buffer<ArrayBuffer>; readonly malformedCount: number }> {
  if (protocol === 'http/protobuf')
    return { bytes: joinBatch(resourceSpans, encodedSpans, allocate), malformedCount: 0 };
  const { spans, malformedCount } = await convertSpans(encodedSpans);
  return { bytes: joinJsonBatch(resourceSpans, spans, allocate), malformedCount };
}

/** Level 1 takes a quarter of the default's time, for a fifth more bytes. */
async function compressed(compression: OtlpOptions['compression'], bytes: Buffer): Promise<Buffer> {
  return compression === 'gzip' ? compress(bytes, { level: constants.Z_BEST_SPEED }) : bytes;
}

/**
 * Rejects if no complete answer came: with the system's error, or the reason of the signal. In all cases nothing of the
 * call remains, except a connection that can be reused.
 */
function post(
  options: OtlpOptions,
  ownHeaders: Readonly<Record<string, string>>,
  body: Buffer,
  signal: AbortSignal,
): Promise<Answer> {
  const request = options.url.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = {
    ...ownHeaders,
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
      if (head !== undefined && !isTaken(head.status)) resolve({ ...head, body: null, isSent: false });
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
          const isSent = call.writableFinished;
          if (!isSent) call.destroy();
          resolve({ status, headers, body: bytes, isSent });
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

/** `requestType`: the type that an answer without a Content-Type has (OTLP specification, "OTLP/HTTP Response"). */
function toOutcome(
  { status, headers, body }: Answer,
  requestType: string,
  malformedCount: number,
): ExportOutcome {
  const answerBody = body === null ? null : { type: headers['content-type'] ?? requestType, bytes: body };
  if (!isTaken(status)) {
    const retryAfterMs = parseRetryAfterMs(headers['retry-after'], Date.now());
    const message = answerBody === null ? undefined : toCollectorMessage(answerBody);
    return { kind: 'answered', status, retryAfterMs, message };
  }
  if (answerBody === null) return { kind: 'oversized' };
  const { rejectedCount, message } = toPartialSuccess(answerBody);
  return { kind: 'taken', rejectedCount: rejectedCount + malformedCount, message };
}

const isTaken = (status: number): boolean => status >= 200 && status <= 299;

/** Sizes are multiples of this: batches of as many records differ a little. */
const STEP_BYTES = 64 * 1024;

/**
 * The memory of the body of a call, which the next call uses again. A body takes a megabyte; as new memory for each call,
 * V8 held what was dead until its next major collection, and began those sooner.
 */
export class BodyMemory {
  #spare: Buffer<ArrayBuffer> | null = null;

  /** Memory of this size. It has anything in it. */
  take(bytes: number): Buffer<ArrayBuffer> {
    const spare = this.#spare;
    this.#spare = null;
    const memory =
      spare !== null && spare.length >= bytes
        ? spare
        : Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
    return memory.subarray(0, bytes);
  }

  /** Nobody reads a body any more. */
  giveBack({ buffer }: Buffer<ArrayBuffer>): void {
    this.#spare = Buffer.from(buffer);
  }
}
