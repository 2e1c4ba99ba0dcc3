import type { Socket } from 'node:net';
import { BodyReader, type BodySink } from './body-reader.ts';
import type { DeadlineClock, Timed } from './deadline-clock.ts';
import type { Fields } from './fields.ts';
import { findHeadEnd, parseResponseHead, type ResponseHead } from './head.ts';
import { HttpError } from './http-error.ts';
import type { SocketReads } from './shared-reads.ts';
import { UnreadBytes } from './unread-bytes.ts';
import { sizeOf, writeMessage } from './write-message.ts';

/** Why a response is not whole. */
export type UpstreamFault =
  /** The connection was closed or reset. */
  | 'closed'
  /** Nothing came in time. */
  | 'timed_out'
  /** What came is not HTTP/1.1 as RFC 9112 has it. */
  | 'malformed'
  /** A defect of ours, in whoever handles the response. */
  | 'defect';

/** Who handles the response to one request. After `onEnd` or `onFault` nothing more comes. */
export interface ResponseHandler extends BodySink {
  /** The system has taken all of the request. Not called if the connection closes before. */
  onWritten(): void;
  onHead(head: ResponseHead, atMs: number): void;
  /** All that one read held was handed over, and the response goes on. */
  onReadEnd(): void;
  /** The response is complete; with it the read. */
  onEnd(trailers: Fields): void;
  /** It is not, and the connection is closed. `hasBytes`: whether any byte came since the request was written. */
  onFault(fault: UpstreamFault, cause: unknown, hasBytes: boolean): void;
}

/** One request as it is written. */
export interface UpstreamRequest {
  readonly method: string;
  /** Request line and fields with their empty line: latin-1. */
  readonly headText: string;
  readonly body: readonly Buffer[];
  /** From the request to the head of the response. */
  readonly firstByteMs: number;
  /** Between two reads of the response. */
  readonly idleMs: number;
}

/** A socket, and its reads where they do not come as `data` events. */
export interface ConnectedSocket {
  readonly socket: Socket;
  readonly reads: SocketReads | undefined;
}

/** To whom a connection goes back. */
export interface UpstreamConnectionOwner {
  readonly clock: DeadlineClock;
  /** Its exchange is over, and it can carry another. */
  onFree(connection: UpstreamConnection): void;
  onClosed(connection: UpstreamConnection): void;
  /** Bytes came that belong to no request: the connection is closed. */
  onUnasked(): void;
  /** A defect of ours ended a connection. */
  reportDefect(error: unknown): void;
}

const NEVER = Number.POSITIVE_INFINITY;
/** undici's limit, and node:http's. Engines send far less. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Informational responses to one request (RFC 9110 15.2): nobody needs more than a few. */
const MAX_INFORMATIONAL = 16;

/**
 * One connection to a server, which carries one request after the other:
 *
 *     idle ─send→ head ─→ body ─complete, request written→ idle (onFree)
 *       └─bytes, closed, too long idle→ closed   └─fault→ closed
 */
type State = 'idle' | 'head' | 'body' | 'closed';

export class UpstreamConnection implements Timed {
  deadlineMs = NEVER;
  clockIndex = -1;
  /** How many requests it has carried, the present one included. */
  exchangeCount = 0;
  /** When it was connected: monotonic. */
  readonly connectedMs: number;
  /** How long the server says it keeps an idle connection; null where it says nothing. */
  keepAliveHintMs: number | null = null;
  readonly #socket: Socket;
  readonly #owner: UpstreamConnectionOwner;
  readonly #unread = new UnreadBytes();
  readonly #body = new BodyReader();
  #state: State = 'idle';
  #method = '';
  #idleMs = NEVER;
  #handler: ResponseHandler | null = null;
  #informationalCount = 0;
  #hasBytes = false;
  #isWritten = false;
  #isKept = false;
  #isPaused = false;
  #closeCause: unknown = null;

  constructor({ socket, reads }: ConnectedSocket, owner: UpstreamConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.connectedMs = owner.clock.nowMs();
    socket.setNoDelay(true);
    const onRead = (read: Buffer) => this.#onRead(read);
    if (reads === undefined) socket.on('data', onRead);
    else reads.listener = onRead;
    socket.on('end', () => this.#onEnd());
    socket.on('error', (error) => {
      this.#closeCause = error;
    });
    socket.on('close', () => this.#fail('closed', this.#closeCause));
    owner.clock.watch(this);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Whether a request is under way on it. */
  get isBusy(): boolean {
    return this.#handler !== null;
  }

  /** Writes a request. */
  send(request: UpstreamRequest, handler: ResponseHandler): void {
    this.#state = 'head';
    // Not the request itself: its body may be large, and is needed no more once it is written.
    this.#method = request.method;
    this.#idleMs = request.idleMs;
    this.#handler = handler;
    this.#informationalCount = 0;
    this.#hasBytes = false;
    this.#isWritten = false;
    this.exchangeCount++;
    this.deadlineMs = this.#owner.clock.recentMs + request.firstByteMs;
    writeMessage(this.#socket, request.headText, request.body, sizeOf(request.body), '');
    if (this.#socket.writableLength === 0) this.#noteWritten(handler);
    else this.#socket.write(NOTHING, () => this.#noteWritten(handler));
  }

  /** Waits idle for the next request, for so long at most. */
  waitIdle(keepAliveMs: number): void {
    this.deadlineMs = this.#owner.clock.recentMs + keepAliveMs;
  }

  /** Reads nothing more until `resume`: whoever the response is for takes no more. */
  pause(): void {
    if (this.#isPaused || this.#state === 'closed') return;
    this.#isPaused = true;
    this.deadlineMs = NEVER;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused || this.#state === 'closed') return;
    this.#isPaused = false;
    this.#noteHeard(this.#owner.clock.recentMs);
    this.#socket.resume();
  }

  /** Closes it at once. Its handler hears nothing of it. */
  destroy(): void {
    this.#handler = null;
    this.#close();
  }

  /** Closes it at once. Its handler hears that it was closed. */
  breakOff(): void {
    this.#fail('closed', null);
  }

  onDeadline(): void {
    this.#fail('timed_out', null);
  }

  #noteWritten(handler: ResponseHandler): void {
    if (this.#handler !== handler) return;
    this.#isWritten = true;
    handler.onWritten();
  }

  #onRead(read: Buffer): void {
    if (this.#state === 'closed') return;
    const handler = this.#handler;
    if (handler === null) {
      this.#owner.onUnasked();
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
      const scanFrom = this.#unread.length;
      this.#unread.append(read);
      bytes = this.#unread.view();
      at = this.#readHead(bytes, scanFrom, handler, nowMs);
      if (at === -1) return;
      this.#unread.clear();
    }
    // Whoever handles the head may have closed the connection.
    if (this.#state !== 'body' || this.#handler !== handler) return;
    this.#noteHeard(nowMs);
    if (!this.#body.isDone) at = this.#body.read(bytes, at, handler);
    if (this.#handler !== handler) return;
    if (this.#body.isDone) this.#endResponse(handler, at === bytes.length);
    else handler.onReadEnd();
  }

  /** Offset behind the head of the response, which was handed over; -1: it is not complete. */
  #readHead(bytes: Buffer, scanFrom: number, handler: ResponseHandler, nowMs: number): number {
    let start = 0;
    let from = scanFrom;
    for (;;) {
      const end = findHeadEnd(bytes, start, from);
      if ((end === -1 ? bytes.length : end) - start > MAX_HEAD_BYTES) throw new HttpError('head_too_large');
      if (end === -1) {
        if (start === 0) return -1;
        this.#unread.clear();
        this.#unread.append(bytes.subarray(start));
        return -1;
      }
      const head = parseResponseHead(bytes, start, end, this.#method);
      if (head.status >= 200) {
        this.#body.start(head.framing);
        this.#isKept = head.keepsAlive && head.framing.kind !== 'until_close';
        this.#noteKeepAlive(head);
        this.#state = 'body';
        handler.onHead(head, nowMs);
        return end;
      }
      this.#informationalCount++;
      // Nobody asked to switch protocols.
      if (head.status === 101 || this.#informationalCount > MAX_INFORMATIONAL)
        throw new HttpError('malformed');
      start = from = end;
    }
  }

  #noteKeepAlive({ fields }: ResponseHead): void {
    const hint = fields.get('keep-alive');
    const seconds = hint === undefined ? undefined : /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(hint)?.[1];
    this.keepAliveHintMs = seconds === undefined ? null : Number(seconds) * 1000;
  }

  #noteHeard(nowMs: number): void {
    if (!this.#isPaused) this.deadlineMs = nowMs + this.#idleMs;
  }

  /** `isExact`: nothing came behind the response. */
  #endResponse(handler: ResponseHandler, isExact: boolean): void {
    const { trailers } = this.#body;
    const isFree = isExact && this.#isKept && this.#isWritten;
    this.#handler = null;
    this.deadlineMs = NEVER;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    if (!isExact) this.#owner.onUnasked();
    if (isFree) this.#state = 'idle';
    else this.#close();
    handler.onEnd(trailers);
    if (isFree && this.#state === 'idle') this.#owner.onFree(this);
  }

  /** The server has closed its side. */
  #onEnd(): void {
    const handler = this.#handler;
    if (this.#state === 'body' && handler !== null) {
      try {
        this.#body.end();
        this.#endResponse(handler, true);
        return;
      } catch (error) {
        this.#fail('closed', error);
        return;
      }
    }
    this.#fail('closed', this.#closeCause);
  }

  #fail(fault: UpstreamFault, cause: unknown): void {
    if (this.#state === 'closed') return;
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
    this.#unread.clear();
    this.#socket.destroy();
    this.#owner.onClosed(this);
  }
}

const NOTHING = Buffer.alloc(0);
