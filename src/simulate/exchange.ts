import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { type Dialect, type Stopwatch, stepCount } from './dialects/dialect.ts';
import { Refusal } from './failure.ts';
import type { Pace } from './pace.ts';
import type { Answer } from './plan-answer.ts';
import type { Fault, ServedRequest } from './settings.ts';

/** The injected failure of a stream, and the number of steps before it. */
export interface PlannedFault {
  readonly kind: Exclude<Fault, 'status_500'>;
  readonly afterSteps: number;
}

/** An answer on its way to the client. */
export interface Delivery {
  readonly response: ServerResponse;
  readonly dialect: Dialect;
  readonly pace: Pace;
  readonly now: () => number;
  /** Aborts when the client has left, which stops the generation. */
  readonly signal: AbortSignal;
  /** Share of the prompt that was cached, 0 to 1. */
  readonly cachedShare: number;
  readonly onTokens: (count: number) => void;
}

/** Reads the whole body of a request. Throws Refusal `too_large`, or the error of the socket. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The socket must survive the loop: a 413 still goes out on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Refusal({ code: 'too_large' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Sends the head of an answer as the engine does. */
function writeHead(
  { response, dialect, now }: Pick<Delivery, 'response' | 'dialect' | 'now'>,
  status: number,
  headers: Readonly<Record<string, string | number>>,
): void {
  response.sendDate = false;
  if (!dialect.hintsKeepAlive) response.removeHeader('connection');
  const date = dialect.sendsDate ? { date: new Date(now()).toUTCString() } : {};
  response.writeHead(status, { ...date, ...dialect.headers, ...headers });
}

/** Sends a JSON body and waits until it has left. */
export async function sendJson(
  delivery: Pick<Delivery, 'response' | 'dialect' | 'now'>,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const type = text === '' ? {} : { 'content-type': delivery.dialect.jsonContentType };
  writeHead(delivery, status, { ...type, 'content-length': Buffer.byteLength(text), ...headers });
  delivery.response.end(text);
  await finished(delivery.response);
}

/** Generates the answer, then sends it whole. */
export async function sendWhole(answer: Answer, delivery: Delivery): Promise<void> {
  const stopwatch = createStopwatch(delivery.now);
  await delivery.pace.untilFirst(delivery.cachedShare);
  stopwatch.markFirstToken();
  await delivery.pace.untilNext(stepCount(answer) - 1);
  delivery.onTokens(answer.usage.completionTokens);
  await sendJson(delivery, 200, delivery.dialect.body(answer, stopwatch));
}

/** Streams the answer token by token, at the client's speed at most, to its end or its fault. */
export async function sendStream(
  answer: Answer,
  fault: PlannedFault | null,
  delivery: Delivery,
): Promise<ServedRequest['ending']> {
  const { response, dialect, pace, signal } = delivery;
  const stopwatch = createStopwatch(delivery.now);
  const open = (): void => {
    writeHead(delivery, 200, dialect.streamHeaders);
    response.flushHeaders();
  };
  if (dialect.headersBeforeFirstToken) open();
  let steps = 0;
  for (const step of dialect.stream(answer, stopwatch)) {
    if (step.after === 'first_token') {
      await pace.untilFirst(delivery.cachedShare);
      stopwatch.markFirstToken();
      if (!dialect.headersBeforeFirstToken) open();
    } else if (step.after === 'next_token') {
      await pace.untilNext(1);
    }
    for (const write of step.writes) {
      if (!response.write(write)) await once(response, 'drain', { signal });
    }
    delivery.onTokens(step.tokens);
    steps += 1;
    if (fault?.afterSteps === steps) return await fail(fault.kind, delivery);
  }
  response.end();
  await finished(response);
  return 'complete';
}

async function fail(
  kind: PlannedFault['kind'],
  { response, dialect }: Delivery,
): Promise<PlannedFault['kind']> {
  if (kind === 'error_event') {
    response.end(dialect.streamError);
    await finished(response);
    return kind;
  }
  // The callback of an empty write says that all earlier writes have left: the cut is in mid-stream.
  await new Promise((resolve) => response.write('', resolve));
  response.destroy();
  return kind;
}

function createStopwatch(now: () => number): Stopwatch & { markFirstToken(): void } {
  const startedAtMs = now();
  let firstTokenAtMs = startedAtMs;
  return {
    markFirstToken: () => {
      firstTokenAtMs = now();
    },
    promptMs: () => firstTokenAtMs - startedAtMs,
    predictedMs: () => now() - firstTokenAtMs,
  };
}
