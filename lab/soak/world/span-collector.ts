import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, gunzipSync } from 'node:zlib';
import { decodeMessage } from '#testkit/otlp/otlp-messages.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

/** A collector that writes what it gets into a file, and remembers little of it, so that hours of records fit. */
export interface SpanCollector extends AsyncDisposable {
  readonly url: string;
  /** The ids of the requests whose records have come. */
  readonly requestIds: ReadonlySet<string>;
  /** The replicas in records of requests that failed, by the request's id. */
  readonly replicasOfFailed: ReadonlyMap<string, string>;
  /** The records in calls whose answer may not have reached the gateway, which then sends them again. */
  readonly unansweredRecords: number;
  /** Stops to listen, and cuts what is open. */
  close(): Promise<void>;
  /** Listens again, on the same port. */
  reopen(): Promise<void>;
  /** Closes the collector and its file. */
  finish(): Promise<void>;
}

/** Starts a collector on a free port. `file`: for the records, compressed with zstd. */
export async function startSpanCollector(file: string): Promise<SpanCollector> {
  const requestIds = new Set<string>();
  const replicasOfFailed = new Map<string, string>();
  const compress = createZstdCompress();
  const written = pipeline(compress, createWriteStream(file));
  let unansweredRecords = 0;
  const listener: RequestListener = async (request, response) => {
    const body = await buffer(request).catch(() => null);
    if (body === null) return;
    const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    const isProtobuf = request.headers['content-type']?.includes('protobuf') === true;
    const data = (
      isProtobuf ? decodeMessage('TracesData', bytes) : JSON.parse(bytes.toString())
    ) as TracesData;
    const records = recordsOf(data);
    if (!compress.write(`${JSON.stringify(data)}\n`)) await once(compress, 'drain');
    for (const { id, replica } of records) {
      requestIds.add(id);
      if (replica !== null) replicasOfFailed.set(id, replica);
    }
    response.once('close', () => {
      if (!response.writableFinished) unansweredRecords += records.length;
    });
    if (response.destroyed) unansweredRecords += records.length;
    response.setHeader('Content-Type', isProtobuf ? 'application/x-protobuf' : 'application/json');
    response.end(isProtobuf ? '' : '{}');
  };
  let server: Server;
  const open = async (port: number) => {
    server = createServer(listener);
    return await listen(server, port);
  };
  const port = await open(0);
  const close = () => closeServer(server);
  const finish = async () => {
    await close();
    compress.end();
    await written;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    requestIds,
    replicasOfFailed,
    get unansweredRecords() {
      return unansweredRecords;
    },
    close,
    reopen: async () => void (await open(port)),
    finish,
    [Symbol.asyncDispose]: finish,
  };
}

interface TracesData {
  readonly resourceSpans?: readonly {
    readonly scopeSpans?: readonly { readonly spans?: readonly Span[] }[];
  }[];
}

interface Span {
  readonly attributes?: readonly {
    readonly key: string;
    readonly value: { readonly stringValue?: string; readonly intValue?: string | number };
  }[];
}

/** `replica`: of a request that failed otherwise than by its client; else null. */
function recordsOf({ resourceSpans = [] }: TracesData) {
  const spans = resourceSpans.flatMap(({ scopeSpans = [] }) => scopeSpans.flatMap(({ spans = [] }) => spans));
  return spans.flatMap(({ attributes = [] }) => {
    const read = (name: string) => attributes.find(({ key }) => key === `gateway.${name}`)?.value;
    const id = read('request_id')?.stringValue;
    const status = Number(read('status')?.intValue ?? 0);
    const error = read('error_type')?.stringValue;
    const hasFailed = status >= 500 || (error !== undefined && error !== 'client_closed' && status < 400);
    return id === undefined
      ? []
      : [{ id, replica: hasFailed ? (read('replica')?.stringValue ?? null) : null }];
  });
}
