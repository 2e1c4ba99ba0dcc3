import { STATUS_CODES } from 'node:http';
import { type Fields, type RequestHead, sizeOf } from '#wire/message';
import type { RequestBodySink } from './request-body.ts';

/**
 * How an exchange ended. `sent`: the operating system accepted the complete response. `closed`: the connection closed
 * before that. `malformed`: the request body was not valid HTTP, and the connection sent an error response.
 */
export type ExchangeEnd = 'sent' | 'closed' | 'malformed';

/** The head of a response to send. */
export interface OutgoingHead {
  readonly status: number;
  /** Latin-1; may be empty. */
  readonly reason: string;
  /** Field lines, each with its CRLF, without those for framing (Content-Length …) and for the connection. */
  readonly fieldLines: string;
  /** The length of the body in bytes; null if unknown. */
  readonly contentLength: number | null;
}

/** What an exchange needs from its connection. */
export interface ExchangeConnection {
  readonly remoteAddress: string | undefined;
  /** Whether the client uses TLS. */
  readonly isEncrypted: boolean;
  /** The subject of the client's certificate, which was verified: one line for each part; undefined if there is none. */
  readonly clientSubject: string | undefined;
  /** Whether the connection can be kept open after this exchange, as far as is known now. */
  canKeep(): boolean;
  /** The field lines that announce a persistent connection. */
  readonly keepAliveLines: string;
  readBody(sink: RequestBodySink, timeoutMs: number): void;
  discardBody(): void;
  stopReadingBody(): void;
  yieldToOtherSockets(): void;
  pauseReading(): void;
  resumeReading(): void;
  /** Writes to the client. Returns false when the caller should wait for `onDrain`. */
  write(before: string, pieces: readonly Buffer[], sizeBytes: number, after: string): boolean;
  /** The complete response has been passed to `write`. */
  endResponse(isKept: boolean): void;
  destroy(): void;
}

const LAST_CHUNK = '0\r\n';

/** Statuses whose responses have no body (RFC 9110 6.4.1). */
export const isBodiless = (status: number) => status === 204 || status === 304;

/**
 * One request of a client and its response. The head is sent together with the first bytes of the body, so that a small
 * response is one write.
 */
export class HttpExchange {
  readonly head: RequestHead;
  /** When the head was complete: monotonic milliseconds. */
  readonly arrivedMs: number;
  /** Called exactly once, when the exchange is finished, with the time: monotonic milliseconds. */
  onFinished: ((end: ExchangeEnd, atMs: number) => void) | null = null;
  /** Called when the client accepts more bytes after `write` returned false. */
  onDrain: (() => void) | null = null;
  /** Whether the connection is closed after this response even if the client wants to keep it. */
  isLast = false;
  readonly #connection: ExchangeConnection;
  #state: 'unanswered' | 'head_due' | 'sending' | 'ended' | 'finished' = 'unanswered';
  #status = 0;
  #headText = '';
  #bodyKind: 'none' | 'plain' | 'chunked' = 'none';
  #isKept = false;

  constructor(head: RequestHead, connection: ExchangeConnection, arrivedMs: number) {
    this.head = head;
    this.arrivedMs = arrivedMs;
    this.#connection = connection;
  }

  get remoteAddress(): string | undefined {
    return this.#connection.remoteAddress;
  }

  /** The subject of the client's certificate, which was verified: one line for each part; undefined if there is none. */
  get clientSubject(): string | undefined {
    return this.#connection.clientSubject;
  }

  get scheme(): 'http' | 'https' {
    return this.#connection.isEncrypted ? 'https' : 'http';
  }

  /** The status of the response; 0 before it has begun. */
  get status(): number {
    return this.#status;
  }

  /** Whether a response has begun. No other can be sent then. */
  get isAnswered(): boolean {
    return this.#status !== 0;
  }

  /** Whether the complete response has been passed to the connection. */
  get isEnded(): boolean {
    return this.#state === 'ended' || this.#state === 'finished';
  }

  get isFinished(): boolean {
    return this.#state === 'finished';
  }

  /** Reads the body into the sink, within `timeoutMs`. Sends `100 Continue` if the client expects it. */
  readBody(sink: RequestBodySink, timeoutMs: number): void {
    if (!this.isFinished) this.#connection.readBody(sink, timeoutMs);
  }

  /** Reads and discards the body, up to a limit. If the body is longer, the connection is closed. */
  discardBody(): void {
    if (!this.isFinished) this.#connection.discardBody();
  }

  /** Stops reading the body. */
  stopReadingBody(): void {
    if (!this.isFinished) this.#connection.stopReadingBody();
  }

  /** Pauses reading until the event loop has served the other sockets. */
  yieldToOtherSockets(): void {
    if (!this.isFinished) this.#connection.yieldToOtherSockets();
  }

  /** Pauses reading until `resumeReading`, because the body cannot be passed on. */
  pauseReading(): void {
    if (!this.isFinished) this.#connection.pauseReading();
  }

  resumeReading(): void {
    if (!this.isFinished) this.#connection.resumeReading();
  }

  /**
   * Begins the response, unless one has begun or the exchange is finished. The head is sent with the next write or by
   * `flushHead`.
   */
  begin(head: OutgoingHead): void {
    if (this.#state !== 'unanswered') return;
    const { status, reason, fieldLines, contentLength } = head;
    const isOld = this.head.minorVersion === 0;
    const hasNoBody = isBodiless(status) || this.head.method === 'HEAD';
    this.#state = 'head_due';
    this.#status = status;
    this.#bodyKind = hasNoBody ? 'none' : contentLength === null && !isOld ? 'chunked' : 'plain';
    const endsByClosing = contentLength === null && isOld && !hasNoBody;
    this.#isKept = !this.isLast && !endsByClosing && this.#connection.canKeep();
    this.#headText =
      `HTTP/1.1 ${status} ${reason}\r\n${fieldLines}` +
      (this.#bodyKind === 'chunked'
        ? 'Transfer-Encoding: chunked\r\n'
        : contentLength === null || status === 204
          ? ''
          : `Content-Length: ${contentLength}\r\n`) +
      (this.#isKept ? this.#connection.keepAliveLines : 'Connection: close\r\n') +
      '\r\n';
  }

  /** Sends the head if it has not been sent. */
  flushHead(): void {
    if (this.#state === 'head_due') this.write(NO_PIECES);
  }

  /**
   * Sends the pieces in one write; in chunked coding as one chunk. Returns false when the caller should wait for
   * `onDrain`.
   */
  write(pieces: readonly Buffer[]): boolean {
    if (this.#state !== 'head_due' && this.#state !== 'sending') return true;
    const sizeBytes = this.#bodyKind === 'none' ? 0 : sizeOf(pieces);
    const before = this.#takeHead() + this.#toChunkSize(sizeBytes);
    // An empty chunk would end the body.
    if (sizeBytes === 0 && before === '') return true;
    return this.#connection.write(before, pieces, sizeBytes, this.#toChunkEnd(sizeBytes));
  }

  /** Completes the response with its last pieces. Trailers are sent in chunked coding only. */
  end(pieces: readonly Buffer[] = NO_PIECES, trailers: Fields | null = null): void {
    if (this.#state !== 'head_due' && this.#state !== 'sending') return;
    const sizeBytes = this.#bodyKind === 'none' ? 0 : sizeOf(pieces);
    const before = this.#takeHead() + this.#toChunkSize(sizeBytes);
    const last = this.#bodyKind === 'chunked' ? `${LAST_CHUNK}${toTrailerLines(trailers)}\r\n` : '';
    const after = this.#toChunkEnd(sizeBytes) + last;
    this.#state = 'ended';
    if (sizeBytes > 0 || before !== '' || after !== '') {
      this.#connection.write(before, pieces, sizeBytes, after);
    }
    this.#connection.endResponse(this.#isKept);
  }

  /** Sends a complete response. `fieldLines`: those besides Content-Type and Date, each with its CRLF. */
  answer(status: number, contentType: string, text: string, fieldLines = ''): void {
    const body = Buffer.from(text);
    this.begin({
      status,
      reason: STATUS_CODES[status] ?? '',
      fieldLines: `Content-Type: ${contentType}\r\n${fieldLines}Date: ${new Date().toUTCString()}\r\n`,
      contentLength: body.length,
    });
    this.end([body]);
  }

  /** Closes the connection at once, so that the client sees that the response is incomplete. */
  destroy(): void {
    if (!this.isFinished) this.#connection.destroy();
  }

  /** Called by the connection when the exchange is finished. */
  finish(end: ExchangeEnd, atMs: number): void {
    this.#state = 'finished';
    const { onFinished } = this;
    this.onFinished = null;
    this.onDrain = null;
    onFinished?.(end, atMs);
  }

  #takeHead(): string {
    if (this.#state !== 'head_due') return '';
    this.#state = 'sending';
    const text = this.#headText;
    this.#headText = '';
    return text;
  }

  #toChunkSize(sizeBytes: number): string {
    return this.#bodyKind === 'chunked' && sizeBytes > 0 ? `${sizeBytes.toString(16)}\r\n` : '';
  }

  #toChunkEnd(sizeBytes: number): string {
    return this.#bodyKind === 'chunked' && sizeBytes > 0 ? '\r\n' : '';
  }
}

const NO_PIECES: readonly Buffer[] = [];

function toTrailerLines(fields: Fields | null): string {
  if (fields === null) return '';
  let lines = '';
  for (let i = 0; i < fields.count; i++) lines += `${fields.names[i]}: ${fields.values[i]}\r\n`;
  return lines;
}
