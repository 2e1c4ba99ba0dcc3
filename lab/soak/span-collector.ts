import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { decodeMessage } from '../../test/support/otlp/otlp-messages.ts';

/** A collector that keeps nothing of a record but its id, so that hours of records fit. */
export interface SpanCollector extends AsyncDisposable {
  readonly url: string;
  /** The ids of the requests whose records have come. */
  readonly requestIds: ReadonlySet<string>;
  /** Stops to listen, and cuts what is open. */
  close(): Promise<void>;
  /** Listens again, on the same port. */
  reopen(): Promise<void>;
}

/** Starts a collector on a free port. */
export async function startSpanCollector(): Promise<SpanCollector> {
  const requestIds = new Set<string>();
  const listener: RequestListener = async (request, response) => {
    const body = await buffer(request).catch(() => null);
    if (body === null) return;
    const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    const isProtobuf = request.headers['content-type']?.includes('protobuf') === true;
    const data = isProtobuf ? decodeMessage('TracesData', bytes) : JSON.parse(bytes.toString());
    for (const id of requestIdsOf(data as TracesData)) requestIds.add(id);
    response.setHeader('Content-Type', 'application/json').end('{}');
  };
  const open = async (port: number) => {
    const server = createServer(listener).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  let server = await open(0);
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    requestIds,
    close,
    async reopen() {
      server = await open(port);
    },
    [Symbol.asyncDispose]: close,
  };
}

interface TracesData {
  readonly resourceSpans?: readonly {
    readonly scopeSpans?: readonly {
      readonly spans?: readonly {
        readonly attributes?: readonly {
          readonly key: string;
          readonly value: { readonly stringValue?: string };
        }[];
      }[];
    }[];
  }[];
}

function requestIdsOf({ resourceSpans = [] }: TracesData): string[] {
  const spans = resourceSpans.flatMap(({ scopeSpans = [] }) => scopeSpans.flatMap(({ spans = [] }) => spans));
  return spans.flatMap(({ attributes = [] }) => {
    const id = attributes.find(({ key }) => key === 'gateway.request_id')?.value.stringValue;
    return id === undefined ? [] : [id];
  });
}
