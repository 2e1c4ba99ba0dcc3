import type { Socket } from 'node:net';
import type { DeadlineClock, Timed } from './deadline-clock.ts';
import { findHeadEnd, parseRequestHead, type RequestHead } from './head.ts';
import { HttpError } from './http-error.ts';
import { type ExchangeConnection, type ExchangeEnd, HttpExchange } from './http-exchange.ts';
import { REFUSALS, type Refusal, toRefusalText } from './refusal.ts';
import { RequestBody, type RequestBodySink } from './request-body.ts';
import { UnreadBytes } from './unread-bytes.ts';
import { writeMessage } from './write-message.ts';

/** Times and sizes that hold for every connection of a listener. */
export interface ClientConnectionSettings {
  readonly maxHeadBytes: number;
  /** From the first byte of a head to its last. */
  readonly headTimeoutMs: number;
  /** How long a connection without a request is kept. */
  readonly keepAliveMs: number;
  /** How long a client may take nothing of what is sent to it. */
  readonly sendTimeoutMs: number;
  /** Bytes of a request's body that are read and thrown away after its answer. */
  readonly maxDiscardedBytes: number;
}

/** What the connections of a listener have in common. */
export interface ClientConnectionContext {
  readonly settings: ClientConnectionSettings;
  /** `closing`: each response that begins is the last of its connection. `ending`: no connection is kept. */
  readonly phase: 'serving' | 'closing' | 'ending';
  readonly clock: DeadlineClock;
  handle(exchange: HttpExchange): void;
  /** A defect of ours ended a connection. */
  reportDefect(error: unknown): void;
  /** The connection is closed: called exactly once. */
  onClosed(connection: ClientConnection): void;
}

/** Bytes of requests behind the present one that wait unread; then the socket is not read. */
const MAX_PIPELINED_BYTES = 64 * 1024;
/** How long a client has to read an answer after which the connection is closed (RFC 9112 9.6). */
const LINGER_MS = 5_000;
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const NEVER = Number.POSITIVE_INFINITY;

/**
 * What a connection does:
 *
 *     idle ─first byte→ head ─complete→ exchange ─response sent, body read→ idle
 *                        │                 └─otherwise→ lingering → closed
 *                        └─malformed, too large, too slow→ lingering
 */
type State = 'idle' | 'head' | 'exchange' | 'lingering' | 'closed';

/**
 * One connection of a client: reads one request after the other, each when the response before it was sent. Whoever
 * sends requests faster is not read from.
 */
export class ClientConnection implements ExchangeConnection, Timed {
  deadlineMs: number;
  clockIndex = -1;
  readonly #socket: Socket;
  readonly #context: ClientConnectionContext;
  readonly #body = new RequestBody();
  /** A part of a head, a body that nobody has claimed yet, or requests behind the present one. */
  readonly #unread = new UnreadBytes();
  #state: State = 'idle';
  #exchange: HttpExchange | null = null;
  #isReading = false;
  /** Bytes handed to the system when it was last looked at whether the client takes any. */
  #sentBytes = 0;

  constructor(socket: Socket, context: ClientConnectionContext) {
    this.#socket = socket;
    this.#context = context;
    this.deadlineMs = context.clock.nowMs() + context.settings.keepAliveMs;
    socket.on('data', (read: Buffer) => {
      // Not by #guard: a function per read is garbage per read.
      try {
        this.#onRead(read);
      } catch (error) {
        this.#fail(error);
      }
    });
    socket.on('drain', () => this.#guard(() => this.#onDrain()));
    socket.on('end', () => this.#guard(() => this.#onEnd()));
    // What failed is told by 'close'.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#guard(() => this.#onClose()));
    context.clock.watch(this);
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get isEncrypted(): boolean {
    return 'encrypted' in this.#socket;
  }

  get keepAliveLines(): string {
    const seconds = Math.floor(this.#context.settings.keepAliveMs / 1000);
    return seconds < 1
      ? 'Connection: keep-alive\r\n'
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`;
  }

  /** Ends it after the response under way; at once when there is none. */
  closeWhenIdle(): void {
    if (this.#state === 'idle') this.#linger();
  }

  destroy(): void {
    this.#socket.destroy();
    // Whoever destroys a connection need not wait for the event loop to learn that it is closed.
    this.#onClose();
  }

  onDeadline(): void {
    this.#guard(() => {
      switch (this.#state) {
        case 'head':
          // Some clients send a line end behind a body (RFC 9112 2.2): no request has begun.
          if (
            this.#unread.length <= 2 &&
            this.#unread.view().equals(LINE_END.subarray(0, this.#unread.length))
          ) {
            this.destroy();
          } else this.#refuse(REFUSALS.slow);
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

  // What an exchange asks of its connection.

  canKeep(): boolean {
    if (this.#context.phase !== 'serving' || this.#exchange?.head.keepsAlive !== true) return false;
    // Nobody wants the body; what lies here of it may be all.
    if (this.#body.state === 'unclaimed') this.discardBody();
    return this.#body.state === 'done' || this.#body.state === 'claimed';
  }

  readBody(sink: RequestBodySink, timeoutMs: number): void {
    if (this.#body.state === 'done') {
      sink.onEnd();
      return;
    }
    this.#body.claim(sink);
    this.deadlineMs = this.#context.clock.recentMs + timeoutMs;
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
    this.#noteSending();
  }

  restForATurn(): void {
    if (this.#socket.isPaused()) return;
    this.#socket.pause();
    setImmediate(() => this.#resume());
  }

  write(before: string, pieces: readonly Buffer[], sizeBytes: number, after: string): boolean {
    if (this.#state === 'closed') return true;
    const canTakeMore = writeMessage(this.#socket, before, pieces, sizeBytes, after);
    if (!canTakeMore) this.#noteSending();
    return canTakeMore;
  }

  endResponse(isKept: boolean): void {
    if (this.#socket.writableLength === 0) this.#endExchange(isKept);
    else {
      this.#noteSending();
      this.#socket.write(NOTHING, () => this.#guard(() => this.#endExchange(isKept)));
    }
  }

  // What comes from the socket.

  #onRead(read: Buffer): void {
    switch (this.#state) {
      case 'idle':
        this.#state = 'head';
        this.deadlineMs = this.#context.clock.nowMs() + this.#context.settings.headTimeoutMs;
        this.#unread.append(read);
        this.#readHeads(0);
        break;
      case 'head': {
        const scanFrom = this.#unread.length;
        this.#unread.append(read);
        this.#readHeads(scanFrom);
        break;
      }
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

  /** Reads heads and what is behind them for as long as there is something to read. */
  #readHeads(scanFrom: number): void {
    // An exchange that ends at once comes back here: the loop goes on with what is behind it.
    if (this.#isReading) return;
    this.#isReading = true;
    let from = scanFrom;
    while (this.#state === 'head' && this.#unread.length > 0 && this.#tryReadHead(from)) from = 0;
    this.#isReading = false;
  }

  /** Whether a head was complete and its exchange has begun. */
  #tryReadHead(scanFrom: number): boolean {
    const bytes = this.#unread.view();
    const { maxHeadBytes } = this.#context.settings;
    let head: RequestHead;
    let end: number;
    try {
      end = findHeadEnd(bytes, 0, scanFrom);
      if ((end === -1 ? bytes.length : end) > maxHeadBytes) {
        this.#refuse(REFUSALS.tooLarge);
        return false;
      }
      if (end === -1) return false;
      head = parseRequestHead(bytes, 0, end);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      this.#refuse(REFUSALS.malformed);
      return false;
    }
    this.#unread.clear();
    if (end < bytes.length) this.#unread.append(bytes.subarray(end));
    this.#beginExchange(head);
    return true;
  }

  #beginExchange(head: RequestHead): void {
    this.#state = 'exchange';
    this.deadlineMs = NEVER;
    this.#body.start(head.framing);
    const exchange = new HttpExchange(head, this, this.#context.clock.nowMs());
    this.#exchange = exchange;
    if (head.method === 'CONNECT') {
      // No tunnel is made; what follows is not HTTP.
      this.#refuse(REFUSALS.connect);
      return;
    }
    this.#context.handle(exchange);
  }

  #readUnreadBody(): void {
    if (this.#unread.length > 0) this.#readBody(this.#unread.take());
  }

  #readBody(bytes: Buffer): void {
    let end: number;
    try {
      end = this.#body.read(bytes);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      this.#endMalformed();
      return;
    }
    if (this.#exchange === null) return;
    if (!this.#body.isComplete) {
      if (this.#body.discardedBytes > this.#context.settings.maxDiscardedBytes) this.#giveUpBody();
      return;
    }
    // Before the sink is told: it may answer at once.
    if (end < bytes.length) this.#keepUnread(bytes.subarray(end));
    const sink = this.#body.finish();
    this.deadlineMs = NEVER;
    sink?.onEnd();
  }

  /** More of an unwanted body came than is thrown away: if its answer is out, the connection ends. */
  #giveUpBody(): void {
    this.#body.stop();
    if (this.#exchange?.isEnded === true) this.destroy();
    else this.#socket.pause();
  }

  #keepUnread(bytes: Buffer): void {
    this.#unread.append(bytes);
    if (this.#unread.length > MAX_PIPELINED_BYTES) this.#socket.pause();
  }

  #discard(sizeBytes: number): void {
    this.#body.countDiscarded(sizeBytes);
    if (this.#body.discardedBytes <= this.#context.settings.maxDiscardedBytes) return;
    if (this.#state === 'lingering') this.destroy();
    else this.#socket.pause();
  }

  #resume(): void {
    if (this.#state === 'closed' || this.#unread.length > MAX_PIPELINED_BYTES) return;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #onDrain(): void {
    if (this.#body.state !== 'claimed') this.deadlineMs = NEVER;
    this.#exchange?.onDrain?.();
  }

  /** The client has closed its side. One that waits for an answer is taken for gone. */
  #onEnd(): void {
    if (this.#state === 'exchange' && this.#exchange?.isEnded === true) this.#state = 'lingering';
    if (this.#state === 'lingering') this.#socket.end();
    else this.destroy();
  }

  #onClose(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#context.clock.unwatch(this);
    this.#unread.clear();
    this.#finish('closed');
    this.#context.onClosed(this);
  }

  #onExchangeDeadline(): void {
    if (this.#body.state === 'claimed') {
      const sink = this.#body.stop();
      this.#noteSending();
      sink?.onTimeout();
    } else if (this.#socket.bytesWritten - this.#socket.writableLength > this.#sentBytes) this.#noteSending();
    else this.destroy();
  }

  /** From now on the client has so long to take something of what is sent to it. */
  #noteSending(): void {
    if (this.#body.state === 'claimed') return;
    this.#sentBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    this.deadlineMs = this.#context.clock.recentMs + this.#context.settings.sendTimeoutMs;
  }

  /** The response was handed to the system whole. */
  #endExchange(isKept: boolean): void {
    if (this.#exchange === null) return;
    const canGoOn = isKept && this.#body.state === 'done' && this.#context.phase !== 'ending';
    this.#finish('sent');
    if (this.#state !== 'exchange') return;
    if (!canGoOn) {
      this.#linger();
      return;
    }
    this.#state = 'idle';
    this.deadlineMs = this.#context.clock.recentMs + this.#context.settings.keepAliveMs;
    if (this.#unread.length > 0) {
      this.#state = 'head';
      this.deadlineMs = this.#context.clock.recentMs + this.#context.settings.headTimeoutMs;
      this.#readHeads(0);
    }
    this.#resume();
  }

  /** Ends our side, and lets the client read what was sent: closing at once would reset the connection. */
  #linger(): void {
    this.#state = 'lingering';
    this.#unread.clear();
    this.deadlineMs = this.#context.clock.recentMs + LINGER_MS;
    this.#socket.end();
    this.#resume();
  }

  /** The body of the request is no valid HTTP: that request is answered so, if it got no answer yet. */
  #endMalformed(): void {
    if (this.#exchange?.isAnswered !== false) {
      this.destroy();
      return;
    }
    this.#finish('malformed');
    this.#refuse(REFUSALS.malformed);
  }

  /** Answers where there is no request to answer to, and closes. */
  #refuse(refusal: Refusal): void {
    this.#finish('malformed');
    this.#body.stop();
    this.#socket.write(toRefusalText(refusal), 'latin1');
    this.#linger();
  }

  #finish(end: ExchangeEnd): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#body.forgetSink();
    exchange?.finish(end, this.#context.clock.nowMs());
  }

  /** An error that nobody foresaw ends this connection, never the process. */
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
const LINE_END = Buffer.from('\r\n');
