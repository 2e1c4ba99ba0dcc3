import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorFacts, toErrorJson } from './error-body.ts';
import type { SharedLimit } from './shared-limit.ts';

export interface ListenerSettings {
  readonly maxHeaderBytes: number;
  readonly headersTimeoutMs: number;
  readonly keepAliveMs: number;
}

/** Handles one request; `acceptBody` sends the 100 that a client may be waiting for. */
export type RequestHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  acceptBody: () => void,
) => void;

/**
 * Creates an HTTP server: Node's strict parser (no request with two readings gets past it),
 * bounded heads, connections and times. What is not HTTP is answered with 400, 431 or 408 and closed.
 */
export function createListener(
  settings: ListenerSettings,
  connections: SharedLimit,
  handle: RequestHandler,
): Server {
  /** The latest request of each connection, while its response is open. */
  const open = new WeakMap<Duplex, ServerResponse>();
  const server = createServer({
    maxHeaderSize: settings.maxHeaderBytes,
    headersTimeout: settings.headersTimeoutMs,
    // The body's time is read-body's business: it has to end in an answer and a record.
    requestTimeout: 0,
    keepAliveTimeout: settings.keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, settings.headersTimeoutMs),
    insecureHTTPParser: false,
    // Checked below, together with what Node lets pass.
    requireHostHeader: false,
  });
  // Before Node's own listener of the event, which makes a parser for the connection.
  server.prependListener('connection', (socket) => {
    if (!connections.tryTake(1)) socket.destroy();
    else socket.once('close', () => connections.giveBack(1));
  });
  // Node drops fields beyond 2,000 silently; the size limit bounds them instead.
  server.maxHeadersCount = 0;

  /** Refuses a request that comes after the open one. Bytes of ours in its response would be taken for it. */
  const refuseNext = (socket: Duplex, refusal: Refusal) => {
    if (open.has(socket)) socket.destroy();
    else refuse(socket, refusal);
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse, acceptBody: () => void) => {
    const { socket } = request;
    // What was read together with a refused request is not looked at.
    if (socket.writableEnded || socket.destroyed) return;
    if (!isWellFormed(request)) {
      refuseNext(socket, REFUSALS.malformed);
      return;
    }
    open.set(socket, response);
    response.once('close', () => {
      if (open.get(socket) === response) open.delete(socket);
    });
    handle(request, response, acceptBody);
  };
  server.on('request', (request, response) => onRequest(request, response, () => undefined));
  // Another expectation than 100-continue may be ignored (RFC 9110 10.1.1).
  server.on('checkExpectation', (request, response) => onRequest(request, response, () => undefined));
  server.on('checkContinue', (request, response) =>
    onRequest(request, response, () => response.writeContinue()),
  );
  server.on('connect', (_request, socket) => refuseNext(socket, REFUSALS.connect));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const response = open.get(socket);
    const isGone = error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && response);
    if (isGone) socket.destroy();
    // The body of a request is malformed: that request gets the answer, if it is its turn and it got none yet.
    else if (response !== undefined && isUnanswered(response)) {
      refuse(socket, refusalOf(error), () => response.destroy(error));
    } else refuseNext(socket, refusalOf(error));
  });
  return server;
}

/** Takes over the settings that can change while it serves: its times. */
export function configureListener(
  server: Server,
  { headersTimeoutMs, keepAliveMs }: Pick<ListenerSettings, 'headersTimeoutMs' | 'keepAliveMs'>,
): void {
  server.headersTimeout = headersTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
}

/** Whether a response ended because its request's body was not valid HTTP. */
export function wasMalformed({ errored }: ServerResponse): boolean {
  return errored instanceof Error && 'code' in errored && String(errored.code).startsWith('HPE_');
}

function isUnanswered({ req, socket, headersSent }: ServerResponse): boolean {
  return !req.complete && socket === req.socket && !headersSent;
}

/**
 * What Node's parser lets pass and RFC 9112 does not: no Host or several (3.2), and a request line without
 * a version, which llhttp takes for HTTP/0.9.
 */
function isWellFormed({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  let hostCount = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hostCount++;
  }
  if (httpVersion === '1.0') return hostCount <= 1;
  return httpVersion === '1.1' && hostCount === 1;
}

interface Refusal extends ErrorFacts {
  readonly reason: string;
}

const REFUSALS = {
  connect: { status: 404, reason: 'Not Found', code: 'not_found', message: 'No such path or method here.' },
  malformed: {
    status: 400,
    reason: 'Bad Request',
    code: 'bad_request',
    message: 'The request is not valid HTTP.',
  },
  slow: {
    status: 408,
    reason: 'Request Timeout',
    code: 'request_timeout',
    message: 'The request did not arrive in time.',
  },
  tooLarge: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    code: 'headers_too_large',
    message: 'The request headers are too large.',
  },
} as const satisfies Record<string, Refusal>;

function refusalOf(error: NodeJS.ErrnoException): Refusal {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return REFUSALS.tooLarge;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return REFUSALS.slow;
    default:
      return REFUSALS.malformed;
  }
}

/** Answers on a bare socket, where there is no request to answer to, and closes it. */
function refuse(socket: Duplex, refusal: Refusal, close: () => void = () => socket.destroy()): void {
  if (!socket.writable) {
    close();
    return;
  }
  const body = toErrorJson(refusal);
  socket.on('error', () => undefined);
  socket.end(
    `HTTP/1.1 ${refusal.status} ${refusal.reason}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    close,
  );
}

/**
 * Starts listening; rejects with the system's error (EADDRINUSE, EACCES …). Port 0 picks a free one. `reusePort`: the
 * port is shared with others who say so, and the system spreads connections over them (SO_REUSEPORT).
 */
export function listen(
  server: Server,
  address: { readonly host: string; readonly port: number; readonly reusePort?: boolean },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : address.port);
    });
  });
}

/** Stops accepting; resolves at once. Idle connections are closed, others when their response ends. */
export function stopAccepting(server: Server): void {
  server.close();
  server.closeIdleConnections();
}
