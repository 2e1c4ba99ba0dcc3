import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { DONE, event } from '../../src/simulate/dialects/dialect.ts';
import { EventLog } from './event-log.ts';
import { valuesOf } from './raw-http.ts';

/** One request as it reached a replica. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  /** Names and values in turn, as they were on the wire. */
  readonly rawHeaders: readonly string[];
  /** Ordinal of the connection it came on, the first being 1. */
  readonly connection: number;
  /** The whole body, once it came. */
  readonly body: Promise<Buffer>;
  /** Whether the connection closed before the replica's answer was complete. */
  readonly isAborted: boolean;
  /** Every value of a field, in order; its name in any case. */
  header(name: string): readonly string[];
  /** Resolves when the connection closes before the answer is complete. */
  untilAborted(): Promise<void>;
}

/** What a script can do with one request. Each step is on the wire before its promise resolves. */
export interface ReplicaExchange {
  readonly request: ReceivedRequest;
  /** Sends the response head by itself. Fields are flat: names and values in turn. */
  head(status: number, fields?: readonly string[]): Promise<void>;
  /** Sends bytes of the body; resolves when the socket has taken them, or is gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Ends the body as its framing says. */
  end(bytes?: string | Uint8Array): void;
  /** Closes the connection in order (FIN), in the middle of whatever was sent. */
  cut(): void;
  /** Resets the connection (RST). */
  reset(): void;
  /** Sends bytes outside of any framing: for answers that are not HTTP. */
  raw(bytes: string | Uint8Array): Promise<void>;
}

/** The behaviour of a replica for one request. It runs when the request's headers came. */
export type Script = (exchange: ReplicaExchange) => void | Promise<void>;

/** What a replica tells of itself in GET /v1/models. */
export interface ModelList {
  readonly models: readonly string[];
  readonly ownedBy?: string;
}

/** A real HTTP server on a free port that does what the test says, and tells what it saw. */
export interface FakeReplica extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** The requests of clients, oldest first; the gateway's own probes are not among them. */
  readonly requests: readonly ReceivedRequest[];
  /** The requests without X-Request-Id, the gateway's own, but those for its version. */
  readonly probes: readonly ReceivedRequest[];
  /** Resolves when at least this many probes came. */
  untilProbes(count: number): Promise<readonly ReceivedRequest[]>;
  /** What probes are told from now on; null: 404. */
  list(list: ModelList | null): void;
  /** What the gateway's own requests get from now on. */
  answerProbes(script: Script): void;
  /** What a request for its version gets from now on. */
  answerVersion(script: Script): void;
  /** How many connections were ever opened. */
  readonly connectionCount: number;
  /** The behaviour from now on. */
  answer(script: Script): void;
  /** The behaviour for the next request; several calls queue up. */
  answerOnce(script: Script): void;
  /** The oldest request that was not asked for yet, as soon as its headers came. */
  nextRequest(): Promise<ReceivedRequest>;
  /** Resolves when at least this many requests came. */
  untilRequests(count: number): Promise<readonly ReceivedRequest[]>;
  /** Resolves when exactly this many connections are open. */
  untilOpenConnections(count: number): Promise<void>;
  /** Resets every open connection, as an engine that dies. */
  resetConnections(): void;
  /** From now on the port refuses connections; open ones are closed. */
  close(): Promise<void>;
}

export interface FakeReplicaOptions {
  readonly name?: string;
  /** Without one, every request is answered with a small JSON body. */
  readonly script?: Script;
  /** The answer to probes; without it they get a 404. */
  readonly list?: ModelList;
  /** What it tells as a vLLM in GET /version; without it that is a 404. */
  readonly version?: string;
  /** Where it listens; by default on a free port of 127.0.0.1. */
  readonly address?: string;
  readonly port?: number;
}

/** Starts a replica. */
export async function startFakeReplica(options: FakeReplicaOptions = {}): Promise<FakeReplica> {
  const requests = new EventLog<ReceivedRequest>();
  const probes = new EventLog<ReceivedRequest>();
  const connections = new EventLog<Socket>();
  const queued: Script[] = [];
  let script = options.script ?? answerJson(COMPLETION);
  let answerProbe = listModels(options.list ?? null);
  const { version } = options;
  let answerVersion = answerJson({ version }, { status: version === undefined ? 404 : 200 });

  // Idle connections stay open until the gateway or the test closes them.
  const server = createServer({
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    maxHeaderSize: 1024 * 1024,
  });
  server.maxHeadersCount = 0;
  server.on('connection', (socket) => {
    socket.setMaxListeners(0);
    connections.push(socket);
    socket.once('close', () => connections.wake());
    socket.on('error', () => undefined);
  });
  server.on('request', (request, response) => {
    const received = receive(request, response, connections.items.indexOf(request.socket) + 1);
    if (received.header('x-request-id').length === 0 && request.url === '/version') {
      void answerVersion(toExchange(received, response));
      return;
    }
    if (received.header('x-request-id').length === 0) {
      probes.push(received);
      void answerProbe(toExchange(received, response));
      return;
    }
    const run = queued.shift() ?? script;
    void run(toExchange(received, response));
    requests.push(received);
  });
  const { address = '127.0.0.1' } = options;
  server.listen(options.port ?? 0, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const close = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    name: options.name ?? 'a',
    url: `http://${address}:${port}`,
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
    get connectionCount() {
      return connections.items.length;
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
      connections.until(() => connections.items.filter((socket) => !socket.destroyed).length === count),
    resetConnections() {
      for (const socket of connections.items) socket.resetAndDestroy();
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
 * A URL that refuses connections. Its port belongs to the replica given, which listens on another loopback
 * address, so that nobody else can take it while the test runs.
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

function receive(request: IncomingMessage, response: ServerResponse, connection: number): ReceivedRequest {
  const closing = new EventLog<'closed'>();
  request.socket.once('close', () => closing.push('closed'));
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
        socket.once('close', () => resolve());
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
    raw(bytes) {
      socket.write(bytes);
      return untilFlushed(socket);
    },
  };
}

function untilFlushed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.write('', () => resolve());
    socket.once('close', () => resolve());
  });
}

/** A whole chat completion, as an engine without frills answers it. */
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
  pieces: readonly string[],
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
