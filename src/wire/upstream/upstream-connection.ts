import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { DeadlineClock, Timed } from '#wire';
import { BodyReader, HttpError, type ResponseHead, sizeOf, writeMessage } from '#wire/message';
import { ResponseHeadReader } from './response-head-reader.ts';
import type { SocketReads } from './shared-reads.ts';
import type { ResponseHandler, RunningStream, UpstreamFault, UpstreamRequest } from './upstream-request.ts';

/** A socket. `reads`: the source of its reads if they do not arrive as `data` events. */
export interface ConnectedSocket {
  readonly socket: Socket;
  readonly reads: SocketReads | undefined;
}

/** The owner of a connection, which gets it back after each exchange. */
export interface UpstreamConnectionOwner {
  readonly clock: DeadlineClock;
  /** The exchange is finished, and the connection can carry another. */
  onFree(connection: UpstreamConnection): void;
  onClosed(connection: UpstreamConnection): void;
  /** A response is complete, whatever becomes of its connection. `sentMs`: when its request was, if it was a stream. */
  onResponseEnd(sentMs: number | null): void;
  /** Bytes arrived that belong to no response. The connection is closed. */
  onUnsolicitedBytes(): void;
  /** Reports a bug in the gateway that ended a connection. */
  reportDefect(error: unknown): void;
}

const NEVER = Number.POSITIVE_INFINITY;

/**
 * The states of a connection:
 *
 *     idle ─send→ head ─→ body ─complete, request written→ idle (onFree)
 *       └─bytes, closed, too long idle→ closed   └─fault→ closed
 */
type State = 'idle' | 'head' | 'body' | 'closed';

/** One connection to a server, which carries one request at a time. */
export class UpstreamConnection implements Timed {
  deadlineMs = NEVER;
  clockIndex = -1;
  /** How many requests it has carried, including the current one. */
  exchangeCount = 0;
  /** When the present request, or the last one, was sent: monotonic milliseconds. */
  sentMs = NEVER;
  /** When it was connected: monotonic milliseconds. */
  readonly connectedMs: number;
  /** How long the server announced that it keeps an idle connection; null if it announced nothing. */
  keepAliveHintMs: number | null = null;
  /** Called once, when the server accepts more bytes after `writeBody` returned false. */
  onDrain: (() => void) | null = null;
  readonly #socket: Socket;
  readonly #owner: UpstreamConnectionOwner;
  readonly #head = new ResponseHeadReader();
  readonly #body = new BodyReader();
  #state: State = 'idle';
  #firstByteMs = NEVER;
  #idleMs = NEVER;
  /** The same, once bytes of the body have come. */
  #answeringIdleMs = NEVER;
  #handler: ResponseHandler | null = null;
  #hasBytes = false;
  /** Whether bytes of the present response's body have come. */
  #hasBody = false;
  #isWritten = false;
  #isKept = false;
  #isPaused = false;
  #closeCause: unknown = null;

  constructor({ socket, reads }: ConnectedSocket, owner: UpstreamConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.connectedMs = owner.clock.nowMs();
    const onRead = (read: Buffer) => this.#onRead(read);
    // A socket that does not read into shared memory (TLS, or an intercepted connection) emits its reads.
    socket.on('data', onRead);
    if (reads !== undefined) reads.listener = onRead;
    socket.on('drain', () => this.#onDrain());
    socket.on('end', () => this.#onEnd());
    socket.on('error', (error) => {
      this.#closeCause = error;
      // Node leaves a TLS socket open whose records cannot be decrypted.
      socket.destroy();
    });
    socket.on('close', () => this.#fail('closed', this.#closeCause));
    owner.clock.watch(this);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Whether a request is in flight on it. */
  get isBusy(): boolean {
    return this.#handler !== null;
  }

  /**
   * Since when the server has sent nothing although it has all of the request and we read: monotonic milliseconds. Null
   * if it owes nothing. It follows from the deadline, so that a read does not pay for it.
   */
  get silentSinceMs(): number | null {
    if (this.#handler === null || !this.#isWritten || this.#isPaused) return null;
    return this.deadlineMs - (this.#state === 'head' ? this.#firstByteMs : this.#idleMs);
  }

  /** What is streamed on it; null: nothing is. */
  get stream(): RunningStream | null {
    return this.#handler?.stream ?? null;
  }

  /** Whether bytes of the response's body have come. A server whose engine is frozen still sends the head of a stream. */
  get isAnswering(): boolean {
    return this.#hasBody;
  }

  /** Sends a request. */
  send(request: UpstreamRequest, handler: ResponseHandler): void {
    this.#state = 'head';
    // Only the method is kept: the body may be large and is not needed once it is written.
    this.#head.start(request.method);
    this.#firstByteMs = request.firstByteMs;
    this.#idleMs = request.idleMs;
    this.#answeringIdleMs = request.idleMs;
    this.#handler = handler;
    this.#hasBytes = false;
    this.#hasBody = false;
    this.#isWritten = false;
    this.exchangeCount++;
    this.sentMs = this.#owner.clock.cachedNowMs;
    // A body that comes from elsewhere has a time-out of its own.
    this.deadlineMs = request.body === null ? NEVER : this.#owner.clock.cachedNowMs + request.firstByteMs;
    const body = request.body ?? [];
    writeMessage(this.#socket, request.headText, body, sizeOf(body), '');
    if (request.body !== null) this.#awaitWritten(handler);
  }

  /**
   * Sends a piece of the body, between two texts in latin-1. Returns false when the caller should wait for `onDrain`.
   * Does nothing once the response is over.
   */
  writeBody(before: string, piece: Buffer, after: string): boolean {
    if (this.#handler === null) return true;
    return writeMessage(this.#socket, before, [piece], piece.length, after);
  }

  /** Ends a body that was sent with `writeBody`. `last`: its last bytes, in latin-1; may be empty. */
  endBody(last: string): void {
    if (this.#handler === null) return;
    if (last !== '') this.#socket.write(last, 'latin1');
    this.#restartHeadTimeout();
    this.#awaitWritten(this.#handler);
  }

  /** Sets another time-out between two reads of the present response, from the first bytes of its body on. */
  limitSilence(silentMs: number): void {
    this.#answeringIdleMs = silentMs;
  }

  /** Waits for the next request, for at most `keepAliveMs`. */
  waitIdle(keepAliveMs: number): void {
    this.deadlineMs = this.#owner.clock.cachedNowMs + keepAliveMs;
  }

  /** Stops reading until `resume`, because the client accepts no more bytes. */
  pause(): void {
    this.#isPaused = true;
    this.deadlineMs = NEVER;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#restartIdleTimeout(this.#owner.clock.cachedNowMs);
    this.#socket.resume();
  }

  /** Closes it at once, without calling its handler. */
  destroy(): void {
    this.#handler = null;
    this.#close();
  }

  /** Closes it at once. Its handler gets the fault `closed`. */
  abort(): void {
    this.#fail('closed', null);
  }

  onDeadline(): void {
    this.#fail('timed_out', null);
  }

  #onDrain(): void {
    const { onDrain } = this;
    this.onDrain = null;
    onDrain?.();
  }

  #awaitWritten(handler: ResponseHandler): void {
    if (this.#socket.writableLength === 0) this.#markWritten(handler);
    else this.#socket.write(NOTHING, () => this.#markWritten(handler));
  }

  #markWritten(handler: ResponseHandler): void {
    // The callback of a write also comes when the connection has broken, or was closed, before the end of the request.
    if (this.#socket.destroyed) return;
    this.#isWritten = true;
    this.#restartHeadTimeout();
    handler.onWritten();
  }

  #onRead(read: Buffer): void {
    const handler = this.#handler;
    if (handler === null) {
      this.#owner.onUnsolicitedBytes();
      this.#close();
      return;
    }
    this.#hasBytes = true;
    try {
      this.#readResponse(read, handler);
    } catch (error) {
      this.#fail(error instanceof HttpError ? 'malformed' : 'defect', error);
    }
  }

  #readResponse(read: Buffer, handler: ResponseHandler): void {
    const nowMs = this.#owner.clock.nowMs();
    let bytes = read;
    let at = 0;
    if (this.#state === 'head') {
      const head = this.#head.read(read);
      if (head === null) return;
      at = this.#head.end;
      bytes = this.#head.takeAll();
      this.#startBody(head);
      handler.onHead(head, nowMs);
    }
    // `onHead` may have closed the connection.
    if (this.#handler !== handler) return;
    if (!this.#hasBody && at < bytes.length) {
      this.#hasBody = true;
      this.#idleMs = this.#answeringIdleMs;
    }
    this.#restartIdleTimeout(nowMs);
    at = this.#body.read(bytes, at, handler);
    if (this.#handler !== handler) return;
    if (this.#body.isDone) this.#endResponse(handler, at === bytes.length);
    else handler.onReadEnd();
  }

  #startBody(head: ResponseHead): void {
    this.#state = 'body';
    this.#body.start(head.framing);
    this.#isKept = head.keepsAlive;
    this.keepAliveHintMs = readKeepAliveHint(head);
  }

  #restartHeadTimeout(): void {
    if (this.#state === 'head') this.deadlineMs = this.#owner.clock.cachedNowMs + this.#firstByteMs;
  }

  #restartIdleTimeout(nowMs: number): void {
    if (!this.#isPaused) this.deadlineMs = nowMs + this.#idleMs;
  }

  /** `isExact`: no bytes followed the response. */
  #endResponse(handler: ResponseHandler, isExact: boolean): void {
    const { trailers } = this.#body;
    const isFree = isExact && this.#isKept && this.#isWritten;
    this.#owner.onResponseEnd(handler.stream === null ? null : this.sentMs);
    this.#handler = null;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    if (!isExact) this.#owner.onUnsolicitedBytes();
    if (isFree) this.#state = 'idle';
    else this.#close();
    handler.onEnd(trailers);
    if (this.#state === 'idle') this.#owner.onFree(this);
  }

  /** The server has closed its side. */
  #onEnd(): void {
    const handler = this.#handler;
    try {
      if (this.#state === 'body' && handler !== null) {
        this.#body.end();
        // Node does not tell close_notify from a cut by somebody on the way (RFC 9112 9.8), so the end is not proven.
        if (this.#socket instanceof TLSSocket) throw new HttpError('closed_early');
        this.#endResponse(handler, true);
      }
      this.#fail('closed', this.#closeCause);
    } catch (error) {
      this.#fail(error instanceof HttpError ? 'closed' : 'defect', error);
    }
  }

  #fail(fault: UpstreamFault, cause: unknown): void {
    const handler = this.#handler;
    const hasBytes = this.#hasBytes;
    this.#handler = null;
    this.#close();
    if (fault === 'defect') this.#owner.reportDefect(cause);
    try {
      handler?.onFault(fault, cause, hasBytes);
    } catch (error) {
      this.#owner.reportDefect(error);
    }
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#owner.clock.unwatch(this);
    this.#socket.destroy();
    this.#owner.onClosed(this);
  }
}

const NOTHING = Buffer.alloc(0);

function readKeepAliveHint({ fields }: ResponseHead): number | null {
  const hint = fields.get('keep-alive');
  const seconds = hint === undefined ? undefined : /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(hint)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
