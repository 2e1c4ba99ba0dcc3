import { STATUS_CODES } from 'node:http';
import type { Fields } from './fields.ts';
import type { RequestHead } from './head.ts';
import type { RequestBodySink } from './request-body.ts';
import { sizeOf } from './write-message.ts';

/**
 * How an exchange ended: its response was handed to the system whole, the connection closed before that, or the body
 * of its request was no valid HTTP and the connection answered so.
 */
export type ExchangeEnd = 'sent' | 'closed' | 'malformed';

/** The head of a response as it is to be sent. */
export interface OutgoingHead {
  readonly status: number;
  /** Latin-1; may be empty. */
  readonly reason: string;
  /** Field lines, each with its CRLF, without those that frame the body or say what becomes of the connection. */
  readonly fieldLines: string;
  /** The length of the body in bytes; null while it is not known. */
  readonly contentLength: number | null;
}

/** What an exchange needs of its connection. */
export interface ExchangeConnection {
  readonly remoteAddress: string | undefined;
  /** Whether the client speaks TLS. */
  readonly isEncrypted: boolean;
  /** Whether the connection can be kept after this exchange, as far as is known now. */
  canKeep(): boolean;
  /** What a kept connection tells its client: field lines. */
  readonly keepAliveLines: string;
  readBody(sink: RequestBodySink, timeoutMs: number): void;
  discardBody(): void;
  stopReadingBody(): void;
  restForATurn(): void;
  /** Writes to the client; returns whether it takes more. */
  write(before: string, pieces: readonly Buffer[], sizeBytes: number, after: string): boolean;
  /** All of the response was given to `write`. */
  endResponse(isKept: boolean): void;
  destroy(): void;
}

const LAST_CHUNK = '0\r\n';

/** Statuses whose responses have no body (RFC 9110 6.4.1). */
const isBodiless = (status: number) => status === 204 || status === 304;

/**
 * One request of a client and its response. The head is sent with the first bytes of the body, so that what fits is
 * one write.
 */
export class HttpExchange {
  readonly head: RequestHead;
  /** When the head was complete: monotonic milliseconds. */
  readonly arrivedMs: number;
  /** Called exactly once, when nothing more will happen; `atMs`: when that was. */
  onOver: ((end: ExchangeEnd, atMs: number) => void) | null = null;
  /** Called when a client that took no more takes more again. */
  onDrain: (() => void) | null = null;
  /** Whether the connection is closed after this response, whatever the client wants. */
  isLast = false;
  readonly #connection: ExchangeConnection;
  #state: 'unanswered' | 'head_due' | 'sending' | 'ended' | 'over' = 'unanswered';
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

  get scheme(): 'http' | 'https' {
    return this.#connection.isEncrypted ? 'https' : 'http';
  }

  /** The status of the response; 0 before it has begun. */
  get status(): number {
    return this.#status;
  }

  /** Whether a response has begun: no other can be sent. */
  get isAnswered(): boolean {
    return this.#status !== 0;
  }

  /** Whether all of the response was given to the connection. */
  get isEnded(): boolean {
    return this.#state === 'ended' || this.#state === 'over';
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Reads the body into the sink, within this time. Sends the 100 that the client may be waiting for. */
  readBody(sink: RequestBodySink, timeoutMs: number): void {
    if (!this.isOver) this.#connection.readBody(sink, timeoutMs);
  }

  /** Reads the body and throws it away, up to a bound; beyond it the connection is not kept. */
  discardBody(): void {
    if (!this.isOver) this.#connection.discardBody();
  }

  /** Reads nothing more of the body. */
  stopReadingBody(): void {
    if (!this.isOver) this.#connection.stopReadingBody();
  }

  /** Reads on after the event loop has looked at the other sockets. */
  restForATurn(): void {
    if (!this.isOver) this.#connection.restForATurn();
  }

  /** Begins the response, unless it has begun or nothing can be sent any more. Its head goes with what is written next, or by `flushHead`. */
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

  /** Sends the head if it has not gone yet. */
  flushHead(): void {
    if (this.#state === 'head_due') this.write(NO_PIECES);
  }

  /** Sends the pieces in one write, in chunked coding as one chunk. Returns whether the client takes more. */
  write(pieces: readonly Buffer[]): boolean {
    if (this.#state !== 'head_due' && this.#state !== 'sending') return true;
    const sizeBytes = this.#bodyKind === 'none' ? 0 : sizeOf(pieces);
    const before = this.#takeHead() + this.#toChunkSize(sizeBytes);
    // A chunk of no bytes would be the end of the body.
    if (sizeBytes === 0 && before === '') return true;
    return this.#connection.write(before, pieces, sizeBytes, this.#toChunkEnd(sizeBytes));
  }

  /** Ends the response whole, with its last pieces. Trailers go to clients that get chunks. */
  end(pieces: readonly Buffer[] = NO_PIECES, trailers: Fields | null = null): void {
    if (this.#state !== 'head_due' && this.#state !== 'sending') return;
    const sizeBytes = this.#bodyKind === 'none' ? 0 : sizeOf(pieces);
    const before = this.#takeHead() + this.#toChunkSize(sizeBytes);
    const last = this.#bodyKind === 'chunked' ? `${LAST_CHUNK}${toLines(trailers)}\r\n` : '';
    const after = this.#toChunkEnd(sizeBytes) + last;
    this.#state = 'ended';
    if (sizeBytes > 0 || before !== '' || after !== '') {
      this.#connection.write(before, pieces, sizeBytes, after);
    }
    this.#connection.endResponse(this.#isKept);
  }

  /** Sends a whole response of our own. `fieldLines`: those beside Content-Type and Date, each with its CRLF. */
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

  /** Closes the connection at once: nobody takes the response for whole. */
  destroy(): void {
    if (!this.isOver) this.#connection.destroy();
  }

  /** Told by the connection: nothing more will happen. */
  finish(end: ExchangeEnd, atMs: number): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    const { onOver } = this;
    this.onOver = null;
    this.onDrain = null;
    onOver?.(end, atMs);
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

function toLines(fields: Fields | null): string {
  if (fields === null) return '';
  let lines = '';
  for (let i = 0; i < fields.count; i++) lines += `${fields.names[i]}: ${fields.values[i]}\r\n`;
  return lines;
}
