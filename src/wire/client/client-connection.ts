import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Timed } from '#wire';
import { HttpError, type RequestHead, writeMessage } from '#wire/message';
import type { AcceptedConnection, ClientConnectionContext } from './client-connection-context.ts';
import { CONNECTION_ERRORS, type ConnectionError, toErrorResponse } from './connection-errors.ts';
import { type ExchangeConnection, type ExchangeEnd, HttpExchange } from './http-exchange.ts';
import { RequestBody, type RequestBodySink } from './request-body.ts';
import { RequestInput } from './request-input.ts';

/** The socket is paused when more pipelined bytes than this are unread. */
const MAX_PIPELINED_BYTES = 64 * 1024;
/** How long a client has to read the last response before the connection is closed (RFC 9112 9.6). */
const LINGER_MS = 5_000;
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const NEVER = Number.POSITIVE_INFINITY;

/**
 * The states of a connection:
 *
 *     idle ─first byte→ head ─complete→ exchange ─response sent, body read→ idle
 *                        │                 └─otherwise→ lingering → closed
 *                        └─malformed, too large, too slow→ lingering
 */
type State = 'idle' | 'head' | 'exchange' | 'lingering' | 'closed';

/**
 * One connection of a client. It reads a request after the previous response has been sent, and stops reading from
 * clients that send requests faster.
 */
export class ClientConnection implements ExchangeConnection, AcceptedConnection, Timed {
  deadlineMs: number;
  clockIndex = -1;
  readonly #socket: Socket;
  readonly #context: ClientConnectionContext;
  readonly #body = new RequestBody();
  readonly #input = new RequestInput();
  #state: State = 'idle';
  #exchange: HttpExchange | null = null;
  #isReading = false;
  /** How many bytes the operating system had accepted when the send time-out was last restarted. */
  #sentBytes = 0;
  /** Null until it is asked for; empty if there is none. */
  #clientSubject: string | null = null;

  constructor(socket: Socket, context: ClientConnectionContext) {
    this.#socket = socket;
    this.#context = context;
    this.deadlineMs = context.clock.nowMs() + context.settings.keepAliveMs;
    socket.on('data', (read: Buffer) => {
      // Without #guard, which would allocate a closure for each read.
      try {
        this.#onRead(read);
      } catch (error) {
        this.#fail(error);
      }
    });
    socket.on('drain', () => this.#guard(() => this.#onDrain()));
    socket.on('end', () => this.#guard(() => this.#onEnd()));
    // Node leaves a TLS socket open whose records cannot be decrypted. 'close' follows.
    socket.on('error', () => void socket.destroy());
    socket.on('close', () => this.#guard(() => this.#onClose()));
    context.clock.watch(this);
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get isEncrypted(): boolean {
    return 'encrypted' in this.#socket;
  }

  get clientSubject(): string | undefined {
    if (!(this.#socket instanceof TLSSocket)) return undefined;
    // Read once: every request of the connection has the same one.
    this.#clientSubject ??= this.#socket.getPeerX509Certificate()?.subject ?? '';
    return this.#clientSubject === '' ? undefined : this.#clientSubject;
  }

  get keepAliveLines(): string {
    const seconds = Math.floor(this.#context.settings.keepAliveMs / 1000);
    return seconds < 1
      ? 'Connection: keep-alive\r\n'
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`;
  }

  get isReadingHead(): boolean {
    return this.#state === 'head';
  }

  closeIfIdle(): void {
    if (this.#state === 'idle') this.#linger();
  }

  destroy(): void {
    this.#socket.destroy();
    // The caller must see the connection closed at once, before the 'close' event.
    this.#onClose();
  }

  onDeadline(): void {
    this.#guard(() => {
      switch (this.#state) {
        case 'head':
          if (this.#input.hasOnlyLineEnd) this.destroy();
          else this.#sendError(CONNECTION_ERRORS.slow);
          break;
        case 'exchange':
          this.#onExchangeDeadline();
          break;
        case 'idle':
        case 'lingering':
          this.destroy();
          break;
        case 'closed':
          break;
      }
    });
  }

  // Called by the exchange.

  canKeep(): boolean {
    if (this.#context.phase !== 'serving' || this.#exchange?.head.keepsAlive !== true) return false;
    // Nobody has claimed the body. The unread bytes may hold all of it.
    if (this.#body.state === 'unclaimed') this.discardBody();
    return this.#body.state === 'done' || this.#body.state === 'claimed';
  }

  readBody(sink: RequestBodySink, timeoutMs: number): void {
    if (this.#body.state === 'done') {
      sink.onEnd();
      return;
    }
    this.#body.claim(sink);
    this.deadlineMs = this.#context.clock.cachedNowMs + timeoutMs;
    if (this.#exchange?.head.expectsContinue === true) this.#socket.write(CONTINUE, 'latin1');
    this.#readUnreadBody();
  }

  discardBody(): void {
    if (this.#body.state === 'done') return;
    this.#body.discard();
    this.#readUnreadBody();
  }

  stopReadingBody(): void {
    if (this.#body.state === 'done') return;
    this.#body.stop();
    this.#restartSendTimeout();
  }

  yieldToOtherSockets(): void {
    if (this.#socket.isPaused()) return;
    this.#socket.pause();
    setImmediate(() => this.#resume());
  }

  pauseReading(): void {
    this.#socket.pause();
  }

  resumeReading(): void {
    this.#resume();
  }

  write(before: string, pieces: readonly Buffer[], sizeBytes: number, after: string): boolean {
    const canTakeMore = writeMessage(this.#socket, before, pieces, sizeBytes, after);
    if (!canTakeMore) this.#restartSendTimeout();
    return canTakeMore;
  }

  endResponse(isKept: boolean): void {
    if (this.#socket.writableLength === 0) this.#endExchange(isKept);
    else {
      this.#restartSendTimeout();
      this.#socket.write(NOTHING, () => this.#guard(() => this.#endExchange(isKept)));
    }
  }

  // Called by the socket.

  #onRead(read: Buffer): void {
    switch (this.#state) {
      case 'idle':
        this.#input.append(read);
        this.#startHead(this.#context.clock.nowMs());
        break;
      case 'head':
        this.#input.append(read);
        this.#readHeads();
        break;
      case 'exchange':
        this.#onReadInExchange(read);
        break;
      case 'lingering':
        this.#discard(read.length);
        break;
      case 'closed':
        break;
    }
  }

  #onReadInExchange(read: Buffer): void {
    switch (this.#body.state) {
      case 'claimed':
      case 'discarded':
        this.#readBody(read);
        break;
      case 'stopped':
        this.#discard(read.length);
        break;
      case 'unclaimed':
      case 'done':
        this.#keepUnread(read);
        break;
    }
  }

  #startHead(nowMs: number): void {
    this.#state = 'head';
    this.deadlineMs = nowMs + this.#context.settings.headTimeoutMs;
    this.#readHeads();
  }

  /** Reads one request after another until the input is used up or an exchange is in progress. */
  #readHeads(): void {
    // An exchange that ends at once calls this method again. The loop then reads the next request.
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#state === 'head' && this.#input.length > 0 && this.#tryBeginExchange());
    this.#isReading = false;
  }

  /** Begins an exchange if the next head is complete and valid, and returns whether it is. */
  #tryBeginExchange(): boolean {
    let head: RequestHead | null;
    try {
      head = this.#input.readHead(this.#context.settings.maxHeadBytes);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      this.#sendError(CONNECTION_ERRORS[error.code === 'head_too_large' ? 'headTooLarge' : 'malformed']);
      return false;
    }
    if (head !== null) this.#beginExchange(head);
    return head !== null;
  }

  #beginExchange(head: RequestHead): void {
    this.#state = 'exchange';
    this.deadlineMs = NEVER;
    this.#body.start(head.framing);
    const exchange = new HttpExchange(head, this, this.#context.clock.nowMs());
    this.#exchange = exchange;
    if (head.method === 'CONNECT') {
      // The gateway opens no tunnels. The bytes that follow are not HTTP.
      this.#sendError(CONNECTION_ERRORS.connect);
      return;
    }
    this.#context.handle(exchange);
  }

  #readUnreadBody(): void {
    if (this.#input.length === 0) return;
    const unread = this.#input.takeAll();
    // The socket is paused if much has come in the meantime. The sink may pause it again.
    this.#resume();
    this.#readBody(unread);
  }

  #readBody(bytes: Buffer): void {
    let end: number;
    try {
      end = this.#body.read(bytes);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      // Once a response has begun, no error can be sent.
      if (this.#exchange?.isAnswered === false) this.#sendError(CONNECTION_ERRORS.malformed);
      else this.destroy();
      return;
    }
    if (this.#exchange === null) return;
    if (!this.#body.isComplete) {
      if (this.#body.discardedBytes > this.#context.settings.maxDiscardedBytes) this.#stopDiscarding();
      return;
    }
    // Before `onEnd`: the sink may respond at once.
    if (end < bytes.length) this.#keepUnread(bytes.subarray(end));
    const sink = this.#body.finish();
    this.deadlineMs = NEVER;
    sink?.onEnd();
  }

  /** The rest of the body is too long to discard. If the response is complete, the connection is closed. */
  #stopDiscarding(): void {
    this.#body.stop();
    if (this.#exchange?.isEnded === true) this.destroy();
    else this.#socket.pause();
  }

  #keepUnread(bytes: Buffer): void {
    this.#input.append(bytes);
    if (this.#input.length > MAX_PIPELINED_BYTES) this.#socket.pause();
  }

  #discard(sizeBytes: number): void {
    this.#body.countDiscarded(sizeBytes);
    if (this.#body.discardedBytes <= this.#context.settings.maxDiscardedBytes) return;
    if (this.#state === 'lingering') this.destroy();
    else this.#socket.pause();
  }

  #resume(): void {
    if (this.#input.length > MAX_PIPELINED_BYTES) return;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #onDrain(): void {
    if (this.#body.state !== 'claimed') this.deadlineMs = NEVER;
    this.#exchange?.onDrain?.();
  }

  /** The client has closed its side. A client that still waits for a response is treated as disconnected. */
  #onEnd(): void {
    if (this.#state === 'exchange' && this.#exchange?.isEnded === true) this.#state = 'lingering';
    if (this.#state === 'lingering') this.#socket.end();
    else this.destroy();
  }

  #onClose(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#context.clock.unwatch(this);
    this.#input.clear();
    this.#finish('closed');
    this.#context.onClosed(this);
  }

  #onExchangeDeadline(): void {
    if (this.#body.state === 'claimed') {
      const sink = this.#body.stop();
      this.#restartSendTimeout();
      sink?.onTimeout();
    } else if (this.#socket.bytesWritten - this.#socket.writableLength > this.#sentBytes)
      this.#restartSendTimeout();
    else this.destroy();
  }

  /** Gives the client `sendTimeoutMs` to accept more bytes. */
  #restartSendTimeout(): void {
    if (this.#body.state === 'claimed') return;
    this.#sentBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    this.deadlineMs = this.#context.clock.cachedNowMs + this.#context.settings.sendTimeoutMs;
  }

  /** The operating system has accepted the complete response. */
  #endExchange(isKept: boolean): void {
    if (this.#exchange === null) return;
    const canReuse = isKept && this.#body.state === 'done' && this.#context.phase !== 'ending';
    this.#finish('sent');
    if (this.#state !== 'exchange') return;
    if (!canReuse) {
      this.#linger();
      return;
    }
    this.#state = 'idle';
    this.deadlineMs = this.#context.clock.cachedNowMs + this.#context.settings.keepAliveMs;
    if (this.#input.length > 0) this.#startHead(this.#context.clock.cachedNowMs);
    this.#resume();
  }

  /**
   * Closes only the gateway's side, because a full close could reset the connection before the client reads the
   * response.
   */
  #linger(): void {
    this.#state = 'lingering';
    this.#input.clear();
    this.deadlineMs = this.#context.clock.cachedNowMs + LINGER_MS;
    this.#socket.end();
    this.#resume();
  }

  /** Sends an error response from the connection itself, and closes the connection. */
  #sendError(error: ConnectionError): void {
    this.#finish('malformed');
    this.#body.stop();
    this.#socket.write(toErrorResponse(error), 'latin1');
    this.#linger();
  }

  #finish(end: ExchangeEnd): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    exchange?.finish(end, this.#context.clock.nowMs());
  }

  /** Runs an action. An unexpected error ends this connection, never the process. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#context.reportDefect(error);
    this.destroy();
  }
}

const NOTHING = Buffer.alloc(0);
