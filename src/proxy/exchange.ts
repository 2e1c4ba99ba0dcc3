import type { IncomingMessage, ServerResponse } from 'node:http';
import { wasMalformed } from '../http/listener.ts';
import { Failure, type FailureCode, retryAfterSecondsOf, statusOf, toFailureJson } from './failure.ts';
import type { Outbox } from './outbox.ts';
import { lingerAfterAnswer } from './read-body.ts';

/** How an exchange ended, other than by a whole response. */
export type Ending = FailureCode | 'upstream_error' | 'client_closed';

/** Work for an exchange that can be given up. */
export interface Abandonable {
  abandon(cause: 'client_closed' | 'shutting_down'): void;
}

export interface ExchangeStart {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Request bytes thrown away after an early answer, before the connection is closed. */
  readonly lingerBytes: number;
  /** Where what is sent for it waits for the rest of its turn. */
  readonly outbox: Outbox;
}

/**
 * One client request from its first byte to its end: what was sent to the client, whether the client is
 * still there, how it ended. `onFinish` runs exactly once, on every ending.
 */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly outbox: Outbox;
  /** When the request arrived: monotonic, in milliseconds. */
  readonly arrivedMs = performance.now();
  /** What is under way for it; told once when the client goes away, or the exchange is cut, before it is over. */
  attempt: Abandonable | null = null;
  /** Called exactly once, when nothing more will happen. */
  onFinish: (() => void) | null = null;
  /** Its place among those in flight. */
  inFlightIndex = -1;
  readonly #lingerBytes: number;
  #state: 'open' | 'finished' = 'open';
  #ending: Ending | null = null;
  #isTruncated = false;

  constructor(start: ExchangeStart) {
    this.request = start.request;
    this.response = start.response;
    this.requestId = start.requestId;
    this.outbox = start.outbox;
    this.#lingerBytes = start.lingerBytes;
    const onClose = () => this.#close();
    this.response.once('close', onClose);
    // A pipelined response has no socket yet, and hears nothing of the connection's end.
    if (this.response.socket === null) this.request.socket.once('close', onClose);
    // Writing to a client that has just left is no error of ours; 'close' tells the rest.
    this.response.on('error', () => undefined);
  }

  /** Whether nothing can be sent any more. */
  get isFinished(): boolean {
    return this.#state === 'finished';
  }

  get ending(): Ending | null {
    return this.#ending;
  }

  /** Whether the request turned out not to be valid HTTP, and the listener has refused it. */
  get isMalformed(): boolean {
    return wasMalformed(this.response);
  }

  /** Whether the response broke off before its end. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** The status sent to the client; 499 when it left before one was sent. */
  get status(): number {
    return this.response.headersSent ? this.response.statusCode : 499;
  }

  /** Notes how the exchange ends, unless that is known already. */
  note(ending: Ending, isTruncated = false): void {
    this.#ending ??= ending;
    if (isTruncated) this.#isTruncated = true;
  }

  /** Notes that the response came to an end before it was complete, for a reason nobody told. */
  noteTruncated(): void {
    this.#isTruncated = true;
  }

  /** Answers with an error of the gateway's own. Once a response has begun this destroys the connection. */
  fail(code: FailureCode): void {
    if (this.isFinished) return;
    this.note(code, this.response.headersSent);
    if (this.response.headersSent) {
      this.response.destroy();
      return;
    }
    const body = toFailureJson(code);
    const retryAfterSeconds = retryAfterSecondsOf(code);
    this.response.writeHead(statusOf(code), {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'X-Request-Id': this.requestId,
      ...(retryAfterSeconds === null ? {} : { 'Retry-After': retryAfterSeconds }),
    });
    this.response.end(body);
    lingerAfterAnswer(this.request, this.#lingerBytes);
  }

  /** Answers with what was thrown: a Failure's code, or `upstream_failed` for anything unforeseen. */
  failWith(error: unknown): void {
    this.fail(error instanceof Failure ? error.code : 'upstream_failed');
  }

  /** Ends the exchange for a shutdown whose time is up: with 503, an error event, or a broken connection. */
  cut(): void {
    if (this.isFinished) return;
    this.note('shutting_down', this.response.headersSent);
    this.attempt?.abandon('shutting_down');
    if (!this.response.headersSent) this.fail('shutting_down');
    else if (!this.response.writableEnded) this.response.destroy();
  }

  #close(): void {
    if (this.#state === 'finished') return;
    this.#state = 'finished';
    if (!this.response.writableFinished) this.note('client_closed', this.response.headersSent);
    this.attempt?.abandon('client_closed');
    this.attempt = null;
    this.onFinish?.();
    this.onFinish = null;
  }
}
