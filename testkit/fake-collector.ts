import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { decodeMessage } from './otlp/otlp-messages.ts';
import { closeServer, listen } from './servers/local-server.ts';

/** The answer to one call. Default: 200 with an empty message of the request's type, at once. */
export interface CollectorAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text is JSON, bytes are protobuf. */
  readonly body?: string | Uint8Array;
  /** Resolves when the answer may be sent. */
  readonly after?: Promise<unknown>;
  /** Cuts the connection instead of answering. */
  readonly cut?: true;
}

/** A scripted answer, or a handler for other behaviour, such as half a body. */
export type CollectorScript = CollectorAnswer | ((response: ServerResponse) => void);

/** A POST that arrived whole. */
export interface CollectorCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The bytes that arrived, unzipped. */
  readonly bytes: Buffer;
  /** The message in OTLP JSON, also if it came as protobuf. */
  readonly body: string;
  /** Empty for a call with metrics. */
  readonly spans: readonly CollectedSpan[];
  /** The status of the answer; absent until it is sent, and if the connection is cut. */
  status?: number;
}

/** A span as it was on the wire, its attributes flattened to plain values. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly flags: number;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: Readonly<Record<string, PlainValue>>;
  /** For each attribute the member that held it: `intValue`, `doubleValue` … */
  readonly types: Readonly<Record<string, string>>;
  readonly events: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, PlainValue>>;
  }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string; readonly flags: number }[];
  readonly resource: Readonly<Record<string, PlainValue>>;
}

/** The value of an attribute; an int64 as a number. */
export type PlainValue = string | number | boolean | readonly PlainValue[];

/** A real HTTP server that takes OTLP/HTTP, protobuf and JSON, with scripted answers. */
export interface FakeCollector {
  /** The base address, for `export.endpoint`. */
  readonly url: string;
  readonly port: number;
  /** All calls so far, in order of arrival, without those of conditions. */
  readonly calls: readonly CollectorCall[];
  /** The spans of all calls that were answered with 2xx, repeats included. */
  readonly spans: readonly CollectedSpan[];
  /**
   * The spans of conditions, which come in calls of their own. They are taken whatever the script says: a busy machine
   * may bring a gateway into a condition at any time, such as `event_loop_behind`.
   */
  readonly conditionSpans: readonly CollectedSpan[];
  /** The answers to the next calls; later calls get the default answer. */
  answerNext(...answers: readonly CollectorScript[]): void;
  /** Changes the default answer. */
  answerAlways(answer: CollectorScript): void;
  /** Resolves as soon as the predicate holds. It is checked now and after every call and every answer. */
  waitFor(predicate: (collector: FakeCollector) => boolean): Promise<void>;
  /** Cuts all connections and stops listening. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a collector, by default on a free port of 127.0.0.1. */
export async function startFakeCollector(wantedPort = 0, address = '127.0.0.1'): Promise<FakeCollector> {
  const calls: CollectorCall[] = [];
  const conditionSpans: CollectedSpan[] = [];
  const script: CollectorScript[] = [];
  const waiting = new Set<() => void>();
  let standing: CollectorScript = {};

  const changed = (): void => {
    for (const check of waiting) check();
  };

  const server = createServer(async (request, response) => {
    const whole = await readCall(request).catch(() => undefined);
    if (whole === undefined) return;
    const [ofConditions, spans] = [whole.spans.filter(isOfCondition), whole.spans.filter(isNotOfCondition)];
    const call = { ...whole, spans };
    conditionSpans.push(...ofConditions);
    if (ofConditions.length > 0 && spans.length === 0) {
      await give({}, response, call);
      return changed();
    }
    calls.push(call);
    const answer = script.shift() ?? standing;
    changed();
    response.on('finish', () => {
      call.status = response.statusCode;
      changed();
    });
    if (typeof answer === 'function') answer(response);
    else await give(answer, response, call);
  });
  const port = await listen(server, wantedPort, address);

  const collector: FakeCollector = {
    url: `http://${address}:${port}`,
    port,
    calls,
    get spans() {
      return calls.filter(({ status = 0 }) => status >= 200 && status <= 299).flatMap(({ spans }) => spans);
    },
    conditionSpans,
    answerNext: (...answers) => void script.push(...answers),
    answerAlways: (answer) => {
      standing = answer;
    },
    waitFor: (predicate) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          try {
            if (!predicate(collector)) return;
            resolve();
          } catch (error) {
            reject(error);
          }
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      }),
    close: () => closeServer(server),
    [Symbol.asyncDispose]: () => collector.close(),
  };
  return collector;
}

const isOfCondition = ({ attributes }: CollectedSpan) => 'gateway.condition' in attributes;

/** Whether a span is that of a request, or of an action. */
export const isNotOfCondition = (span: CollectedSpan) => !isOfCondition(span);

/** Reads OTLP JSON lines, as `export.to: file` writes them, into the same shape. */
export function readSpans(otlpJson: string): readonly CollectedSpan[] {
  const { resourceSpans } = JSON.parse(otlpJson) as { resourceSpans: readonly WireResourceSpans[] };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => toSpan(span, flatten(resource.attributes)))),
  );
}

async function give(answer: CollectorAnswer, response: ServerResponse, call: CollectorCall): Promise<void> {
  await answer.after;
  if (answer.cut) {
    response.destroy();
    return;
  }
  const body = answer.body ?? (isProtobuf(call.headers) ? new Uint8Array() : '{}');
  const type = typeof body === 'string' ? 'application/json' : PROTOBUF;
  response.writeHead(answer.status ?? 200, { 'content-type': type, ...answer.headers });
  response.end(body);
}

const PROTOBUF = 'application/x-protobuf';
const isProtobuf = (headers: IncomingHttpHeaders) => headers['content-type'] === PROTOBUF;

async function readCall(request: IncomingMessage): Promise<CollectorCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const sent = Buffer.concat(chunks);
  const { headers, url: path = '' } = request;
  const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
  const isMetrics = path.endsWith('/metrics');
  const toJson = () =>
    isProtobuf(headers)
      ? JSON.stringify(decodeMessage(isMetrics ? 'MetricsData' : 'TracesData', bytes))
      : bytes.toString();
  const spans = isMetrics ? [] : readSpans(toJson());
  return {
    path,
    headers,
    bytes,
    spans,
    get body() {
      return toJson();
    },
  };
}

interface WireValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly WireValue[] };
}

interface WireAttribute {
  readonly key: string;
  readonly value: WireValue;
}

interface WireResourceSpans {
  readonly resource: { readonly attributes: readonly WireAttribute[] };
  readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
}

/** A Collector omits empty lists, as the JSON of protobuf does; the gateway writes them. */
type WireSpan = Omit<CollectedSpan, 'attributes' | 'types' | 'events' | 'links' | 'resource'> & {
  readonly attributes?: readonly WireAttribute[];
  readonly links?: CollectedSpan['links'];
  readonly events?: readonly { readonly name: string; readonly attributes?: readonly WireAttribute[] }[];
};

function toSpan(span: WireSpan, resource: Readonly<Record<string, PlainValue>>): CollectedSpan {
  return {
    ...span,
    resource,
    // In protobuf, an absent id is an empty one.
    parentSpanId: span.parentSpanId || undefined,
    traceState: span.traceState || undefined,
    attributes: flatten(span.attributes),
    links: span.links ?? [],
    types: Object.fromEntries(
      (span.attributes ?? []).map(({ key, value }) => [key, Object.keys(value).join()]),
    ),
    events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: flatten(attributes) })),
  };
}

function flatten(attributes: readonly WireAttribute[] = []): Record<string, PlainValue> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toPlain(value)]));
}

function toPlain(value: WireValue): PlainValue {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(toPlain);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? '';
}
