import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import { DONE, event } from '../src/simulate/dialects/dialect.ts';
import { EventLog } from './event-log.ts';
import { valuesOf } from './raw-http.ts';
import { closeServer, listen } from './servers/local-server.ts';

/** A connection to a replica. */
export interface ReplicaConnection {
  /** 1 for the first connection that is not the gateway's own. */
  readonly ordinal: number;
  readonly isClosed: boolean;
  /** Sends bytes outside of any framing; text is latin-1. Resolves when the socket has taken them, or is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Resolves when the gateway or the replica has closed the connection. */
  untilClosed(): Promise<void>;
}

/** One request as a replica received it. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  /** Names and values in turn, as they were on the wire. */
  readonly rawHeaders: readonly string[];
  readonly connection: ReplicaConnection;
  /** Resolves with the whole body. */
  readonly body: Promise<Buffer>;
  /** Whether the connection closed before the replica's answer was complete. */
  readonly isAborted: boolean;
  /** Every value of a field, in order; its name in any case. */
  header(name: string): readonly string[];
  /** Resolves when the connection closes before the answer is complete. */
  untilAborted(): Promise<void>;
}

/** What a script can do with one request. The promise of a step resolves when the step is on the wire. */
export interface ReplicaExchange {
  readonly request: ReceivedRequest;
  /** Sends the response head by itself. Fields are flat: names and values in turn. */
  head(status: number, fields?: readonly string[]): Promise<void>;
  /** Sends bytes of the body; resolves when the socket has taken them, or is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Ends the body according to its framing. */
  end(bytes?: string | Uint8Array): void;
  /** Closes the connection in order (FIN), even in the middle of an answer. */
  cut(): void;
  /** Resets the connection (RST). */
  reset(): void;
  /** Sends bytes outside of any framing, text as latin-1: for answers that are not HTTP, or not of node:http. */
  raw(bytes: string | Uint8Array): Promise<void>;
}

/** The behaviour of a replica for one request. It runs when the head of the request has arrived. */
export type Script = (exchange: ReplicaExchange) => void | Promise<void>;

/** The answer to GET /v1/models. */
export interface ModelList {
  readonly models: readonly string[];
  readonly ownedBy?: string;
}

/** A real HTTP server on a free port that behaves as the test scripts it, and keeps what it received. */
export interface FakeReplica extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** The requests of clients, oldest first; the gateway's own probes are not among them. */
  readonly requests: readonly ReceivedRequest[];
  /** The gateway's own requests, which have no X-Request-Id, but those for the version. */
  readonly probes: readonly ReceivedRequest[];
  /** Resolves when at least this many probes have arrived. */
  untilProbes(count: number): Promise<readonly ReceivedRequest[]>;
  /** The model list for probes from now on; null: 404. */
  list(list: ModelList | null): void;
  /** The behaviour for probes from now on. */
  answerProbes(script: Script): void;
  /** The behaviour for GET /version from now on. */
  answerVersion(script: Script): void;
  /** All connections that were ever opened, but those of the gateway's own requests, oldest first. */
  readonly connections: readonly ReplicaConnection[];
  /** The behaviour from now on. */
  answer(script: Script): void;
  /** The behaviour for the next request; several calls queue up. */
  answerOnce(script: Script): void;
  /** Resolves with the oldest request that this has not returned yet, when its head has arrived. */
  nextRequest(): Promise<ReceivedRequest>;
  /** Resolves when at least this many requests have arrived. */
  untilRequests(count: number): Promise<readonly ReceivedRequest[]>;
  /** Resolves when exactly this many connections are open, not counting those of the gateway's own requests. */
  untilOpenConnections(count: number): Promise<void>;
  /** Resets every open connection, like a crash. */
  resetConnections(): void;
  /** Closes all connections; the port refuses new ones. */
  close(): Promise<void>;
}

export interface FakeReplicaOptions {
  readonly name?: string;
  /** Default: a small JSON answer. */
  readonly script?: Script;
  /** The answer to probes; default: the model `m`. Null: 404. */
  readonly list?: ModelList | null;
  /** The answer to GET /version, as vLLM's; default: 404. */
  readonly version?: string;
  /** Default: a free port of 127.0.0.1. */
  readonly address?: string;
  readonly port?: number;
  /** Serves HTTPS with this certificate. */
  readonly tls?: ServerOptions;
}

/** Starts a replica. */
export async function startFakeReplica(options: FakeReplicaOptions = {}): Promise<FakeReplica> {
  const requests = new EventLog<ReceivedRequest>();
  const probes = new EventLog<ReceivedRequest>();
  const connections = new EventLog<OpenedConnection>();
  const clientConnections = () => connections.items.filter(({ isOfProbe }) => !isOfProbe);
  const queued: Script[] = [];
  let script = options.script ?? answerJson(COMPLETION);
  let answerProbe = listModels(options.list === undefined ? { models: ['m'] } : options.list);
  const { version } = options;
  let answerVersion = answerJson({ version }, { status: version === undefined ? 404 : 200 });

  // Idle connections stay open until the gateway or the test closes them.
  const limits = { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0, maxHeaderSize: 1024 * 1024 };
  const { tls } = options;
  const server = tls === undefined ? createServer(limits) : createTlsServer({ ...limits, ...tls });
  server.maxHeadersCount = 0;
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    socket.setMaxListeners(0);
    const ordinal = () => clientConnections().findIndex((each) => each.socket === socket) + 1;
    connections.push({ socket, connection: toConnection(socket, ordinal), isOfProbe: false });
    socket.once('close', () => connections.wake());
    socket.on('error', () => undefined);
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const opened = connections.items.find(({ socket }) => socket === request.socket);
    if (opened === undefined) throw new Error('a request without a connection');
    const received = receive(request, response, opened.connection);
    const isProbe = received.header('x-request-id').length === 0;
    opened.isOfProbe = isProbe;
    if (isProbe) connections.wake();
    if (isProbe && request.url === '/version') {
      void answerVersion(toExchange(received, response));
      return;
    }
    if (isProbe) {
      probes.push(received);
      void answerProbe(toExchange(received, response));
      return;
    }
    const run = queued.shift() ?? script;
    void run(toExchange(received, response));
    requests.push(received);
  });
  const { address = '127.0.0.1' } = options;
  const port = await listen(server, options.port, address);
  const close = () => closeServer(server);
  return {
    name: options.name ?? 'a',
    url: `${tls === undefined ? 'http' : 'https'}://${address}:${port}`,
    requests: requests.items,
    probes: probes.items,
    untilProbes: (count) => probes.count(count),
    list(list) {
      answerProbe = listModels(list);
    },
    answerProbes(next) {
      answerProbe = next;
    },
    answerVersion(next) {
      answerVersion = next;
    },
    get connections() {
      return clientConnections().map(({ connection }) => connection);
    },
    answer(next) {
      script = next;
    },
    answerOnce(next) {
      queued.push(next);
    },
    nextRequest: () => requests.next(),
    untilRequests: (count) => requests.count(count),
    untilOpenConnections: (count) =>
      connections.until(() => clientConnections().filter(({ socket }) => !socket.destroyed).length === count),
    resetConnections() {
      for (const { socket } of connections.items) socket.resetAndDestroy();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Starts a replica for each name, all with the default answer. */
export async function startFakeReplicas<const Names extends readonly string[]>(
  ...names: Names
): Promise<{ readonly [Name in keyof Names]: FakeReplica } & AsyncDisposable> {
  const replicas = await Promise.all(names.map((name) => startFakeReplica({ name })));
  return Object.assign(replicas as { [Name in keyof Names]: FakeReplica }, {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  });
}

/**
 * A URL that refuses connections. The replica listens on its port at another loopback address, so that no other process
 * can take the port during the test.
 */
export function refusedUrlBeside(replica: FakeReplica): string {
  return replica.url.replace('127.0.0.1', '127.0.0.9');
}

function listModels(list: ModelList | null): Script {
  if (list === null) return answerJson({}, { status: 404 });
  const { models, ownedBy = 'someone' } = list;
  const data = models.map((id) => ({ id, object: 'model', created: 1, owned_by: ownedBy }));
  return answerJson({ object: 'list', data });
}

interface OpenedConnection {
  readonly socket: Socket;
  readonly connection: ReplicaConnection;
  isOfProbe: boolean;
}

function toConnection(socket: Socket, ordinal: () => number): ReplicaConnection {
  const closed = new Promise<void>((resolve) => {
    socket.once('end', resolve).once('close', () => resolve());
  });
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
  });
  return {
    get ordinal() {
      return ordinal();
    },
    get isClosed() {
      return isClosed;
    },
    write(bytes) {
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
      return untilFlushed(socket);
    },
    untilClosed: () => closed,
  };
}

function receive(
  request: IncomingMessage,
  response: ServerResponse,
  connection: ReplicaConnection,
): ReceivedRequest {
  const closing = new EventLog<'closed'>();
  // Of the response: a connection with thousands of requests would gather as many listeners. Each write adds one.
  response.setMaxListeners(0);
  response.once('close', () => closing.push('closed'));
  const isAborted = () => closing.items.length > 0 && !response.writableFinished;
  const body = new Promise<Buffer>((resolve) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => resolve(Buffer.concat(chunks)));
  });
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    rawHeaders: request.rawHeaders,
    connection,
    body,
    get isAborted() {
      return isAborted();
    },
    header: (name) => valuesOf(request.rawHeaders, name),
    untilAborted: () => closing.until(isAborted),
  };
}

function toExchange(request: ReceivedRequest, response: ServerResponse): ReplicaExchange {
  response.sendDate = false;
  response.on('error', () => undefined);
  const socket = response.req.socket;
  return {
    request,
    head(status, fields = []) {
      response.writeHead(status, [...fields]);
      response.flushHeaders();
      return untilFlushed(socket);
    },
    write(bytes) {
      return new Promise((resolve) => {
        response.write(bytes, () => resolve());
        response.once('close', () => resolve());
      });
    },
    end(bytes = '') {
      response.end(bytes);
    },
    cut() {
      socket.end(() => socket.destroy());
    },
    reset() {
      socket.resetAndDestroy();
    },
    raw: request.connection.write,
  };
}

function untilFlushed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.write('', () => resolve());
    socket.once('close', () => resolve());
  });
}

/** A JSON answer with a Content-Length, as bytes for `raw`. `fields` are whole lines without their CRLF. */
export function jsonBytes(body: object, fields: readonly string[] = []): string {
  const text = JSON.stringify(body);
  const lines = ['HTTP/1.1 200 OK', 'Content-Type: application/json', `Content-Length: ${text.length}`];
  return `${[...lines, ...fields].join('\r\n')}\r\n\r\n${text}`;
}

/** A whole chat completion. */
export const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 },
} as const;

export { DONE, event };

/** One event of a chat stream that carries text, or finishes the choice. */
export function chatChunk(content: string, finishReason: string | null = null): string {
  const delta = content === '' ? {} : { content };
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return event({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices });
}

/** The usage chunk of a chat stream. */
export function usageChunk(promptTokens: number, completionTokens: number): string {
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  return event({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [],
    usage,
  });
}

/** Reads the request, then answers with a JSON body. A string is sent as it is. */
export function answerJson(
  body: unknown,
  { status = 200, fields = [] }: { status?: number; fields?: readonly string[] } = {},
): Script {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return async ({ request, head, end }) => {
    await request.body;
    const length = String(Buffer.byteLength(text));
    await head(status, ['Content-Type', 'application/json', 'Content-Length', length, ...fields]);
    end(text);
  };
}

/** Reads the request, then sends these bytes as they are; text is latin-1. */
export function answerRaw(bytes: string | Uint8Array): Script {
  return async ({ request, raw }) => {
    await request.body;
    await raw(bytes);
  };
}

/** Reads the request, then streams the pieces, each a write of its own. */
export function answerStream(
  pieces: readonly (string | Uint8Array)[],
  fields: readonly string[] = [],
): Script {
  return async ({ request, head, write, end }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream', ...fields]);
    for (const piece of pieces) await write(piece);
    end();
  };
}

/** Answers with the head and these pieces, then does one more thing to the connection. */
export function partial(
  type: string,
  pieces: readonly (string | Uint8Array)[],
  last: 'cut' | 'reset' | 'nothing',
  fields: readonly string[] = [],
): Script {
  return async ({ request, head, write, cut, reset }) => {
    await request.body;
    await head(200, ['Content-Type', type, ...fields]);
    for (const piece of pieces) await write(piece);
    if (last === 'cut') cut();
    if (last === 'reset') reset();
  };
}

/** Takes the request and never answers. */
export const hang: Script = () => undefined;

/** Takes the whole request, then resets the connection before a byte of an answer. */
export const resetAfterRequest: Script = async ({ request, reset }) => {
  await request.body;
  reset();
};
