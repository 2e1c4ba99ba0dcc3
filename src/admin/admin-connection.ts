import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Refusal, type RefusalCode } from './refusal.ts';

/** What a call may send as its body, although none is read. */
const MAX_BODY_BYTES = 64 * 1024;
/** Calls that wait on a connection until the one before them is answered. */
const MAX_WAITING = 8;
/** How long a client whose connection is closed has to read what it was told, once the system has taken it all. */
const LINGER_MS = 2_000;
/** How long a client may take nothing of what it is told. */
const STALLED_MS = 30_000;
/** What it may send meanwhile; it is thrown away. */
const MAX_THROWN_BYTES = 1024 * 1024;

/** Handles one call. Its body, if it had one, has come whole and is gone. */
export type CallHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** A call as Node's parser gives it. `acceptBody` sends the 100 that a client may be waiting for. */
interface IncomingCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly acceptBody: () => void;
}

/**
 * One connection to the admin API: its calls are handled one after the other. Once it takes no more of them, what
 * still comes is thrown away, and the client has a moment to read its answer: a connection that is closed with bytes
 * unread is reset by the system, and the answer is lost (RFC 9112 9.6).
 */
export class AdminConnection {
  readonly #socket: Socket;
  readonly #handle: CallHandler;
  readonly #bodyTimeoutMs: () => number;
  readonly #waiting: (() => void)[] = [];
  /** The response of the call that is being handled. */
  #open: ServerResponse | null = null;
  /** Whether calls are taken; no more once it is `closing`, which ends with the answers of those that were. */
  #state: 'open' | 'closing' | 'lingering' = 'open';

  /** `bodyTimeoutMs`: how long a body may take. */
  constructor(socket: Socket, handle: CallHandler, bodyTimeoutMs: () => number) {
    this.#socket = socket;
    this.#handle = handle;
    this.#bodyTimeoutMs = bodyTimeoutMs;
    // This is how Node closes a connection after its last response.
    socket.destroySoon = () => this.#linger();
  }

  /** Handles a call when those before it are answered. */
  take(call: IncomingCall): void {
    // A client should not send one behind a call that has no answer yet (RFC 9112 9.3.2), and nobody reads it.
    if (this.#open !== null && hasBody(call.request)) this.#takeNoMore();
    else this.#enqueue(() => void this.#serve(call));
  }

  /** Refuses what comes after the calls that were taken, and closes. */
  refuseNext(refusal: Refusal): void {
    this.#enqueue(() => this.#refuse(refusal));
    this.#takeNoMore();
  }

  /** What came is not HTTP, came too slowly, or nothing comes any more: Node's error code says which. */
  fail(code: string): void {
    if (this.#state !== 'open') return;
    const { bytesRead } = this.#socket;
    const isUnused = code === 'ERR_HTTP_REQUEST_TIMEOUT' && bytesRead === 0;
    const hasLeft = code === 'ECONNRESET' || (code === 'HPE_INVALID_EOF_STATE' && this.#open !== null);
    if (isUnused || hasLeft || !this.#socket.writable) this.#socket.destroy();
    // The body of a call is malformed, and the call has no answer yet: this is it.
    else if (this.#open !== null && !this.#open.req.complete && !this.#open.headersSent) {
      this.#refuse(new Refusal(toRefusalCode(code)));
    } else if (this.#open !== null && code.startsWith('HPE_CLOSED')) this.#takeNoMore();
    else this.refuseNext(new Refusal(toRefusalCode(code)));
  }

  #enqueue(serve: () => void): void {
    if (this.#state !== 'open') return;
    if (this.#open === null) serve();
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(serve);
    else this.#takeNoMore();
  }

  async #serve({ request, response, acceptBody }: IncomingCall): Promise<void> {
    this.#open = response;
    // The last answer may have left one.
    this.#socket.setTimeout(0);
    response.once('close', () => this.#next(response));
    const end = hasBody(request) ? await discardBody(request, acceptBody, this.#bodyTimeoutMs()) : 'whole';
    if (end === 'gone' || this.#state === 'lingering') return;
    if (end === 'whole') this.#handle(request, response);
    else this.#refuse(new Refusal(end));
  }

  #next(ended: ServerResponse): void {
    if (this.#open !== ended) return;
    this.#open = null;
    if (this.#socket.destroyed) this.#waiting.length = 0;
    const serve = this.#waiting.shift();
    if (serve !== undefined) serve();
    else if (this.#state === 'closing') this.#linger();
  }

  /** Answers on the bare socket, where there is no call to answer to, and closes. */
  #refuse(refusal: Refusal): void {
    const { status } = refusal;
    const body = `${refusal.toJson()}\n`;
    this.#socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nCache-Control: no-store\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    this.#linger();
  }

  #takeNoMore(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#throwAwayInput();
    const open = this.#open;
    if (open === null) this.#linger();
    else if (!open.headersSent && this.#waiting.length === 0) open.shouldKeepAlive = false;
  }

  /** From now on bytes go past the parser. */
  #throwAwayInput(): void {
    let thrownBytes = 0;
    this.#socket.removeAllListeners('data');
    this.#socket.on('data', ({ length }: Buffer) => {
      thrownBytes += length;
      if (thrownBytes <= MAX_THROWN_BYTES) return;
      // A client that sends on and on still has its moment to read; one whose call waits would have an hour.
      if (this.#state === 'lingering') this.#socket.pause();
      else this.#socket.destroy();
    });
    this.#socket.once('end', () => {
      // Node would end the call of a client that leaves; its parser does not hear of it any more.
      if (this.#state === 'closing') this.#socket.destroy();
    });
    this.#socket.resume();
  }

  #linger(): void {
    if (this.#state === 'lingering' || this.#socket.destroyed) return;
    if (this.#state === 'open') this.#throwAwayInput();
    this.#state = 'lingering';
    this.#waiting.length = 0;
    this.#socket.setTimeout(STALLED_MS, () => this.#socket.destroy());
    this.#socket.end(() => {
      const deadline = setTimeout(() => this.#socket.destroy(), LINGER_MS);
      this.#socket.once('close', () => clearTimeout(deadline));
    });
  }
}

function toRefusalCode(code: string): RefusalCode {
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

/** Reads a body and forgets it. Resolves when it has come whole, or is waited for no longer. */
async function discardBody(
  request: IncomingMessage,
  acceptBody: () => void,
  timeoutMs: number,
): Promise<'whole' | 'gone' | 'request_too_large' | 'request_timeout'> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return 'request_too_large';
  acceptBody();
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof discardBody>>>();
  const deadline = setTimeout(resolve, timeoutMs, 'request_timeout');
  let receivedBytes = 0;
  request.on('data', ({ length }: Buffer) => {
    receivedBytes += length;
    if (receivedBytes > MAX_BODY_BYTES) resolve('request_too_large');
  });
  request.once('end', () => resolve('whole'));
  request.once('close', () => resolve('gone'));
  request.once('error', () => resolve('gone'));
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
  }
}
