import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { EventLog } from './event-log.ts';
import { toFields, valuesOf } from './raw-http.ts';

/** One whole request as it reached a raw replica. */
export interface RawRequest {
  /** For example `POST /v1/chat/completions HTTP/1.1`. */
  readonly requestLine: string;
  readonly body: Buffer;
  readonly connection: RawReplicaConnection;
  /** Every value of a field, in order; its name in any case. */
  header(name: string): readonly string[];
}

/** A connection to a raw replica: it sends exactly the bytes it is told to. */
export interface RawReplicaConnection {
  /** Its ordinal, the first being 1. */
  readonly ordinal: number;
  /** Sends bytes at once; text is latin-1. Resolves when the socket has taken them, or is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Closes in order (FIN). */
  end(): void;
  readonly isClosed: boolean;
  /** Resolves when the gateway, or `end`, has closed the connection. */
  untilClosed(): Promise<void>;
}

/** What a raw replica does with each whole request. */
export type RawScript = (request: RawRequest) => void | Promise<void>;

/** A TCP server on a free port that reads requests with a Content-Length, and knows no HTTP for its answers. */
export interface RawReplica extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** The whole requests, oldest first. */
  readonly requests: readonly RawRequest[];
  /** The connections, oldest first. */
  readonly connections: readonly RawReplicaConnection[];
  /** The behaviour from now on. */
  answer(script: RawScript): void;
  /** The oldest request that was not asked for yet, as soon as it is whole. */
  nextRequest(): Promise<RawRequest>;
  untilRequests(count: number): Promise<readonly RawRequest[]>;
}

/** Starts a raw replica. */
export async function startRawReplica(name: string, initial: RawScript): Promise<RawReplica> {
  let script = initial;
  const requests = new EventLog<RawRequest>();
  const connections: RawReplicaConnection[] = [];
  const sockets = new Set<Socket>();
  // Half-open: what is sent after the gateway's FIN is the script's business.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    const connection = toConnection(socket, connections.length + 1);
    connections.push(connection);
    readRequests(socket, connection, (request) => {
      requests.push(request);
      void script(request);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    name,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: requests.items,
    connections,
    answer(next) {
      script = next;
    },
    nextRequest: () => requests.next(),
    untilRequests: (count) => requests.count(count),
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A JSON answer with a Content-Length, as bytes. `fields` are whole lines without their CRLF. */
export function jsonBytes(body: object, fields: readonly string[] = []): string {
  const text = JSON.stringify(body);
  const lines = ['HTTP/1.1 200 OK', 'Content-Type: application/json', `Content-Length: ${text.length}`];
  return `${[...lines, ...fields].join('\r\n')}\r\n\r\n${text}`;
}

function toConnection(socket: Socket, ordinal: number): RawReplicaConnection {
  const closed = new Promise<void>((resolve) => {
    socket.once('end', resolve).once('close', () => resolve());
  });
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
    socket.end();
  });
  return {
    ordinal,
    write: (bytes) =>
      new Promise((resolve) => {
        const data = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
        socket.once('close', resolve);
        socket.write(data, () => {
          socket.off('close', resolve);
          resolve();
        });
      }),
    end: () => void socket.end(),
    get isClosed() {
      return isClosed || socket.destroyed;
    },
    untilClosed: () => closed,
  };
}

function readRequests(
  socket: Socket,
  connection: RawReplicaConnection,
  onRequest: (request: RawRequest) => void,
): void {
  let received = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      const [requestLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n');
      const rawHeaders = toFields(lines);
      const bodyEnd = end + 4 + Number(valuesOf(rawHeaders, 'content-length')[0] ?? 0);
      if (received.length < bodyEnd) return;
      const body = received.subarray(end + 4, bodyEnd);
      received = received.subarray(bodyEnd);
      onRequest({ requestLine, body, connection, header: (name) => valuesOf(rawHeaders, name) });
    }
  });
}
