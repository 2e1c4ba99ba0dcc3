import type { Admission } from '#access/limits';
import type { Log } from '#otel/base';
import type { ExchangeEnd, HttpExchange } from '#wire/client';
import type { RequestHead } from '#wire/message';
import {
  AmbiguousMember,
  Failure,
  type FailureCode,
  fieldLinesOf,
  statusOf,
  type ToErrorBody,
} from './failure.ts';
import type { Outbox } from './outbox.ts';
import type { RefusedName } from './request/inspection/member-names.ts';

/** How an exchange ended, other than by a complete response. */
export type Ending = FailureCode | 'upstream_error' | 'client_closed';

/** Work for an exchange that can be abandoned. */
export interface Abandonable {
  abandon(cause: 'client_closed' | 'shutting_down'): void;
}

export interface ExchangeStart {
  readonly http: HttpExchange;
  readonly requestId: string;
  /** Where requests to replicas wait for the end of the turn. */
  readonly outbox: Outbox;
  /** The JSON text of an error answer, in the form of the API that the client speaks. */
  readonly toErrorBody: ToErrorBody;
  /** Null unless the level of the log is debug: then a step costs one comparison. */
  readonly log: Log<'debug'> | null;
}

/**
 * One client request from its first byte to its end: what was sent to the client, whether the client is still there,
 * how it ended. Every ending reaches the callback of `whenFinished` exactly once.
 */
export class Exchange {
  readonly http: HttpExchange;
  readonly requestId: string;
  readonly outbox: Outbox;
  readonly log: Log<'debug'> | null;
  /** What the request holds of the limits of its client; null: it has none. */
  admission: Admission | null = null;
  /** What the client calls the model, once that is known and something was looked for. */
  modelName: string | null = null;
  /** The name in the body for which the request is refused; null: it is not. */
  refusedName: RefusedName | null = null;
  /** Its index in `InFlight`, which alone writes it. */
  inFlightIndex = -1;
  readonly #toErrorBody: ToErrorBody;
  #work: Abandonable | null = null;
  #onFinish: (() => void) | null = null;
  #ending: Ending | null = null;
  #isTruncated = false;
  #isMalformed = false;
  #endedMs: number | null = null;

  constructor({ http, requestId, outbox, toErrorBody, log }: ExchangeStart) {
    this.http = http;
    this.requestId = requestId;
    this.outbox = outbox;
    this.log = log;
    this.#toErrorBody = toErrorBody;
    // Not assigned as a literal, for the reason at `whenFinished`.
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

  /** Milliseconds from the request's arrival to its end, or to now while it goes on. */
  get durationMs(): number {
    return (this.#endedMs ?? performance.now()) - this.arrivedMs;
  }

  /** Whether nothing more can be sent. */
  get isFinished(): boolean {
    return this.http.isFinished;
  }

  get ending(): Ending | null {
    return this.#ending;
  }

  /** Whether the request was not valid HTTP and its connection refused it. */
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

  /**
   * Sets the callback that runs once, when nothing more will happen. This is a method because V8 allocates a function
   * literal that is assigned to a property in the old generation, as if it were a prototype's method. There it keeps
   * the whole request alive until a major collection. A third of all garbage survived that way.
   */
  whenFinished(callback: () => void): void {
    this.#onFinish = callback;
  }

  /** Registers the work under way. It is abandoned if the client leaves or the exchange is cut before `endWork`. */
  startWork(work: Abandonable): void {
    this.#work = work;
  }

  /** Ends the registration of `startWork`. */
  endWork(): void {
    this.#work = null;
  }

  /** Notes how the exchange ends, unless that is already known. */
  note(ending: Ending, isTruncated = false): void {
    this.#ending ??= ending;
    if (isTruncated) this.#isTruncated = true;
  }

  /** Notes that the response ended before it was complete, without an error. */
  noteTruncated(): void {
    this.#isTruncated = true;
  }

  /**
   * Answers with an error of the gateway. If a response has begun, destroys the connection. `moreLines`: further field
   * lines of the answer.
   */
  fail(code: FailureCode, moreLines = ''): void {
    if (this.isFinished) return;
    this.log?.debug({ code, refused_by: this.admission?.refusedBy }, 'request fails');
    this.note(code, this.http.isAnswered);
    if (this.http.isAnswered) {
      this.http.destroy();
      return;
    }
    const { admission, modelName, refusedName: name } = this;
    const ownLines = `X-Request-Id: ${this.requestId}\r\n${fieldLinesOf(code)}${moreLines}`;
    const fieldLines = ownLines + (admission?.fieldLines() ?? '');
    const json = this.#toErrorBody(code, { refusal: admission?.refusal ?? null, modelName, name });
    this.http.answer(statusOf(code), 'application/json', json, fieldLines);
  }

  /** Answers for a thrown error: with a Failure's code, or `upstream_failed` for any other error. */
  failWith(error: unknown): void {
    if (error instanceof AmbiguousMember) this.refusedName = error.refused;
    this.fail(error instanceof Failure ? error.code : 'upstream_failed');
  }

  /** Ends the exchange because the time of a shutdown is up: with 503, an error event, or a broken connection. */
  cut(): void {
    if (this.isFinished) return;
    this.note('shutting_down', this.http.isAnswered);
    this.#work?.abandon('shutting_down');
    if (!this.http.isAnswered) this.fail('shutting_down');
    else if (!this.http.isEnded) this.http.destroy();
  }

  #close(end: ExchangeEnd, atMs: number): void {
    this.#endedMs = atMs;
    this.#isMalformed = end === 'malformed';
    if (end !== 'sent') this.note('client_closed', this.http.isAnswered);
    this.log?.debug({ status: this.status, end, duration_ms: atMs - this.arrivedMs }, 'request ended');
    this.#work?.abandon('client_closed');
    this.#work = null;
    this.#onFinish?.();
    this.#onFinish = null;
  }
}

/**
 * The exchanges that are not over. It is not a Set: V8's Set leaves every table that it outgrew pointing to the next
 * one, so that a dead table in the old generation keeps whole requests alive (2 % of all garbage survived that way).
 */
export class InFlight implements Iterable<Exchange> {
  readonly #exchanges: Exchange[] = [];

  get size(): number {
    return this.#exchanges.length;
  }

  /** Adds an exchange that is not in it. */
  add(exchange: Exchange): void {
    exchange.inFlightIndex = this.#exchanges.push(exchange) - 1;
  }

  /** Removes an exchange that is in it. The last one moves to its place. */
  remove(exchange: Exchange): void {
    const last = this.#exchanges.pop();
    if (last === undefined || last === exchange) return;
    last.inFlightIndex = exchange.inFlightIndex;
    this.#exchanges[last.inFlightIndex] = last;
  }

  /** Iterates over a copy, since the loop's body may remove exchanges. */
  [Symbol.iterator](): Iterator<Exchange> {
    return [...this.#exchanges].values();
  }
}
