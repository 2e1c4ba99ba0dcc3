import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { AdminError, type AdminErrorCode } from '../admin-error.ts';
import { toSecurityHeaders } from './security-headers.ts';

/** The largest body that a call may send. */
const MAX_BODY_BYTES = 64 * 1024;
/** The most calls that wait on a connection for the response to an earlier one. */
const MAX_WAITING = 8;
/** How long a client has to read the last response, once the system has accepted it all. */
const LINGER_MS = 2_000;
/** How long a client may read nothing of a response. */
const STALLED_MS = 30_000;
/** The most input that is discarded after the last accepted call. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

/** How long a connection without a call is left to its client although others need its place. */
const OWN_TIME_MS = 500;

/** Handles one call. Its body, if any, has been read. */
export type CallHandler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

/** A call from Node's parser. `acceptBody` sends the 100 that the client may be waiting for. */
interface IncomingCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly acceptBody: () => void;
}

/**
 * One connection to the admin API. It handles calls one after another. When it accepts no more calls, it discards
 * further input and gives the client time to read the last response: if a connection is closed with unread input, the
 * system resets it and the response is lost (RFC 9112 9.6).
 */
export class AdminConnection {
  readonly #socket: Socket;
  readonly #handle: CallHandler;
  readonly #bodyTimeoutMs: () => number;
  readonly #waiting: (() => void)[] = [];
  /** When it began to have no call, by the monotonic clock. */
  #idleSinceMs = performance.now();
  /** The response of the call that is handled now. */
  #current: ServerResponse | null = null;
  /** `closing`: it accepts no more calls, and closes after the responses to those that it accepted. */
  #state: 'open' | 'closing' | 'lingering' = 'open';

  /** `bodyTimeoutMs` returns how long a body may take. */
  constructor(socket: Socket, handle: CallHandler, bodyTimeoutMs: () => number) {
    this.#socket = socket;
    this.#handle = handle;
    this.#bodyTimeoutMs = bodyTimeoutMs;
    // Node calls this to close a connection after its last response.
    socket.destroySoon = () => this.#linger();
  }

  /** Handles a call after the ones before it have their responses. */
  accept(call: IncomingCall): void {
    // A client should not send a body while an earlier call has no response (RFC 9112 9.3.2). It would not be read.
    if (this.#current !== null && hasBody(call.request)) this.#stopAccepting();
    else this.#enqueue(() => void this.#handleCall(call));
  }

  /** Sends an error after the responses to the accepted calls, and closes. */
  rejectNext(error: AdminError): void {
    this.#enqueue(() => this.#sendError(error));
    this.#stopAccepting();
  }

  /**
   * Handles an error of Node's parser (invalid HTTP, slow input, the end of input) or of the connection itself. `code` is
   * Node's error code.
   */
  fail(code: string): void {
    // Nothing can be sent any more. Node leaves a TLS socket open whose records cannot be decrypted.
    if (!code.startsWith('HPE_') && !code.startsWith('ERR_HTTP_')) {
      this.#socket.destroy();
      return;
    }
    if (this.#state !== 'open') return;
    const { bytesRead } = this.#socket;
    const isUnused = code === 'ERR_HTTP_REQUEST_TIMEOUT' && bytesRead === 0;
    const hasDisconnected = code === 'HPE_INVALID_EOF_STATE' && this.#current !== null;
    if (isUnused || hasDisconnected || !this.#socket.writable) this.#socket.destroy();
    // The body of the current call is malformed or late, and the call has no response yet.
    else if (this.#current !== null && !this.#current.req.complete && !this.#current.headersSent) {
      this.#sendError(new AdminError(toErrorCode(code)));
    } else if (this.#current !== null && code.startsWith('HPE_CLOSED')) this.#stopAccepting();
    else this.rejectNext(new AdminError(toErrorCode(code)));
  }

  /** Gives its place to others if it has had no call for a while. */
  closeIfIdle(): void {
    const hasCall = this.#current !== null || this.#state !== 'open';
    if (!hasCall && performance.now() - this.#idleSinceMs >= OWN_TIME_MS) this.#socket.destroy();
  }

  #enqueue(start: () => void): void {
    if (this.#state !== 'open') return;
    if (this.#current === null) start();
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(start);
    else this.#stopAccepting();
  }

  async #handleCall({ request, response, acceptBody }: IncomingCall): Promise<void> {
    this.#current = response;
    // The last response may have set one.
    this.#socket.setTimeout(0);
    response.once('close', () => this.#next(response));
    const body = hasBody(request) ? await readBody(request, acceptBody, this.#bodyTimeoutMs()) : NO_BODY;
    if (body === 'closed' || this.#state === 'lingering') return;
    if (typeof body !== 'string') this.#handle(request, response, body);
    else this.#sendError(new AdminError(body));
  }

  #next(ended: ServerResponse): void {
    if (this.#current !== ended) return;
    this.#current = null;
    this.#idleSinceMs = performance.now();
    if (this.#socket.destroyed) this.#waiting.length = 0;
    const start = this.#waiting.shift();
    if (start !== undefined) start();
    else if (this.#state === 'closing') this.#linger();
  }

  /** Writes an error to the socket, because there is no call to respond to, and closes. */
  #sendError(error: AdminError): void {
    const { status } = error;
    const body = `${error.toJson()}\n`;
    const fields = Object.entries(toSecurityHeaders(this.#socket instanceof TLSSocket));
    this.#socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n` +
        fields.map(([name, value]) => `${name}: ${value}\r\n`).join('') +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    this.#linger();
  }

  #stopAccepting(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#discardInput();
    const current = this.#current;
    if (current === null) this.#linger();
    else if (!current.headersSent && this.#waiting.length === 0) current.shouldKeepAlive = false;
  }

  /** Detaches the parser and discards further input. */
  #discardInput(): void {
    let discardedBytes = 0;
    this.#socket.removeAllListeners('data');
    this.#socket.on('data', ({ length }: Buffer) => {
      discardedBytes += length;
      if (discardedBytes <= MAX_DISCARDED_BYTES) return;
      // While it lingers, the client keeps its time to read. A waiting call could otherwise keep it for an hour.
      if (this.#state === 'lingering') this.#socket.pause();
      else this.#socket.destroy();
    });
    this.#socket.once('end', () => {
      // Node would end the call of a client that disconnects, but its parser is detached.
      if (this.#state === 'closing') this.#socket.destroy();
    });
    this.#socket.resume();
  }

  #linger(): void {
    if (this.#state === 'lingering' || this.#socket.destroyed) return;
    if (this.#state === 'open') this.#discardInput();
    this.#state = 'lingering';
    this.#waiting.length = 0;
    this.#socket.setTimeout(STALLED_MS, () => this.#socket.destroy());
    this.#socket.end(() => {
      const deadline = setTimeout(() => this.#socket.destroy(), LINGER_MS);
      this.#socket.once('close', () => clearTimeout(deadline));
    });
  }
}

function toErrorCode(code: string): AdminErrorCode {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'headers_too_large';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request_timeout';
    default:
      return 'bad_request';
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

const NO_BODY = Buffer.alloc(0);

/** Reads a body. Resolves when it is complete, or with the reason to stop reading. */
async function readBody(
  request: IncomingMessage,
  acceptBody: () => void,
  timeoutMs: number,
): Promise<Buffer | 'closed' | 'request_too_large' | 'request_timeout'> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return 'request_too_large';
  acceptBody();
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof readBody>>>();
  const deadline = setTimeout(resolve, timeoutMs, 'request_timeout');
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes > MAX_BODY_BYTES) resolve('request_too_large');
    else chunks.push(chunk);
  });
  request.once('end', () => resolve(Buffer.concat(chunks)));
  request.once('close', () => resolve('closed'));
  request.once('error', () => resolve('closed'));
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
  }
}
