import type { RequestHead } from '../http/head.ts';
import type { ExchangeEnd, HttpExchange } from '../http/http-exchange.ts';
import { Failure, type FailureCode, retryAfterSecondsOf, statusOf, toFailureJson } from './failure.ts';
import type { Outbox } from './outbox.ts';

/** How an exchange ended, other than by a whole response. */
export type Ending = FailureCode | 'upstream_error' | 'client_closed';

/** Work for an exchange that can be given up. */
export interface Abandonable {
  abandon(cause: 'client_closed' | 'shutting_down'): void;
}

export interface ExchangeStart {
  readonly http: HttpExchange;
  readonly requestId: string;
  /** Where requests to replicas wait for the rest of their turn. */
  readonly outbox: Outbox;
}

/**
 * One client request from its first byte to its end: what was sent to the client, whether the client is
 * still there, how it ended. `onFinish` runs exactly once, on every ending.
 */
export class Exchange {
  readonly http: HttpExchange;
  readonly requestId: string;
  readonly outbox: Outbox;
  /** What is under way for it; told once when the client goes away, or the exchange is cut, before it is over. */
  attempt: Abandonable | null = null;
  /** Called exactly once, when nothing more will happen. */
  onFinish: (() => void) | null = null;
  /** Its place among those in flight. */
  inFlightIndex = -1;
  #ending: Ending | null = null;
  #isTruncated = false;
  #isMalformed = false;
  #endedMs: number | null = null;

  constructor({ http, requestId, outbox }: ExchangeStart) {
    this.http = http;
    this.requestId = requestId;
    this.outbox = outbox;
    const close = (end: ExchangeEnd, atMs: number) => this.#close(end, atMs);
    http.onFinished = close;
  }

  get head(): RequestHead {
    return this.http.head;
  }

  /** When the request arrived: monotonic, in milliseconds. */
  get arrivedMs(): number {
    return this.http.arrivedMs;
  }

  /** Milliseconds from the request's arrival to its end; to the present while it goes on. */
  get durationMs(): number {
    return (this.#endedMs ?? performance.now()) - this.arrivedMs;
  }

  /** Whether nothing can be sent any more. */
  get isFinished(): boolean {
    return this.http.isFinished;
  }

  get ending(): Ending | null {
    return this.#ending;
  }

  /** Whether the request turned out not to be valid HTTP, and its connection has refused it. */
  get isMalformed(): boolean {
    return this.#isMalformed;
  }

  /** Whether the response broke off before its end. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** The status sent to the client; 499 when it left before one was sent. */
  get status(): number {
    return this.http.isAnswered ? this.http.status : 499;
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
    this.note(code, this.http.isAnswered);
    if (this.http.isAnswered) {
      this.http.destroy();
      return;
    }
    const retryAfterSeconds = retryAfterSecondsOf(code);
    const retryAfter = retryAfterSeconds === null ? '' : `Retry-After: ${retryAfterSeconds}\r\n`;
    const fieldLines = `X-Request-Id: ${this.requestId}\r\n${retryAfter}`;
    this.http.answer(statusOf(code), 'application/json', toFailureJson(code), fieldLines);
  }

  /** Answers with what was thrown: a Failure's code, or `upstream_failed` for anything unforeseen. */
  failWith(error: unknown): void {
    this.fail(error instanceof Failure ? error.code : 'upstream_failed');
  }

  /** Ends the exchange for a shutdown whose time is up: with 503, an error event, or a broken connection. */
  cut(): void {
    if (this.isFinished) return;
    this.note('shutting_down', this.http.isAnswered);
    this.attempt?.abandon('shutting_down');
    if (!this.http.isAnswered) this.fail('shutting_down');
    else if (!this.http.isEnded) this.http.destroy();
  }

  #close(end: ExchangeEnd, atMs: number): void {
    this.#endedMs = atMs;
    this.#isMalformed = end === 'malformed';
    if (end !== 'sent') this.note('client_closed', this.http.isAnswered);
    this.attempt?.abandon('client_closed');
    this.attempt = null;
    this.onFinish?.();
    this.onFinish = null;
  }
}
