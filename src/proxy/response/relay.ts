import type { Fields } from '../../http/fields.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import { type RelayedHead, toClientTrailers } from '../attempt/headers.ts';
import type { Exchange } from '../exchange.ts';
import { type FailureCode, toErrorEvent } from '../failure.ts';
import type { Sendable } from '../outbox.ts';
import { EventRelay } from './event-relay.ts';
import { JsonTap, type StreamTap } from './response-tap.ts';
import type { RememberedMember, UndoRules } from './undo-usage.ts';

/** How long a finishing event may wait for the event after it. */
const HOLD_MS = 50;

/** Where a response comes from, as far as it can be held back. */
export interface ResponseSource {
  pause(): void;
  resume(): void;
}

/** Where and when a response came. */
export interface ResponseOrigin {
  /** Null: it is all here. */
  readonly source: ResponseSource | null;
  /** When its head came: what comes with it came then. Monotonic milliseconds. */
  readonly arrivedMs: number;
  /** What is known of the connection that it comes on. */
  readonly remembered: RememberedMember;
}

export interface RelayOptions {
  readonly maxEventBytes: number;
  /** What has to be undone in the stream; null when usage was not injected. */
  readonly undo: UndoRules | null;
  /** Absent for responses that leave no record. */
  readonly createStreamTap: (() => StreamTap) | null;
}

/** What is known of a response that goes to the client. */
export interface RelayedResponse {
  readonly isEventStream: boolean;
  /** What it told so far; null where nothing is read of it. */
  readonly facts: StreamTap | JsonTap | null;
}

/**
 * Copies one response to the client: one read, one write, however many chunks or events the read holds. The replica is
 * paused while the client does not read. Knows how each kind of response ends when the replica breaks off.
 */
export class Relay implements RelayedResponse, Sendable {
  readonly isEventStream: boolean;
  readonly #exchange: Exchange;
  readonly #connectionOptions: ReadonlySet<string> | null;
  readonly #source: ResponseSource | null;
  readonly #events: EventRelay | null = null;
  readonly #streamTap: StreamTap | null = null;
  readonly #jsonTap: JsonTap | null = null;
  /** When the present read came. */
  #readMs: number;
  #holdTimer: NodeJS.Timeout | null = null;
  /** What goes out at the end of the present read. */
  #out: Buffer[] = [];
  /** Null until the response is complete. */
  #last: { readonly trailers: Fields | null } | null = null;

  constructor(exchange: Exchange, head: RelayedHead, options: RelayOptions, origin: ResponseOrigin) {
    this.#exchange = exchange;
    this.#source = origin.source;
    this.#readMs = origin.arrivedMs;
    this.isEventStream = head.isEventStream;
    this.#connectionOptions = head.connectionOptions;
    // Nothing is read of a response that leaves no record, or that is compressed.
    const createTap = head.isEncoded ? null : options.createStreamTap;
    if (this.isEventStream && createTap !== null) {
      this.#streamTap = createTap();
      this.#events = new EventRelay({
        maxEventBytes: options.maxEventBytes,
        undo: options.undo,
        remembered: origin.remembered,
        tap: this.#streamTap,
      });
    } else if (head.isJson && createTap !== null && head.status < 400) {
      this.#jsonTap = new JsonTap();
    }
    const { http, requestId } = exchange;
    const fieldLines = `${head.fieldLines}X-Request-Id: ${requestId}\r\n`;
    http.begin({ status: head.status, reason: head.reason, fieldLines, contentLength: head.contentLength });
  }

  /** What the response told so far. */
  get facts(): StreamTap | JsonTap | null {
    return this.#streamTap ?? this.#jsonTap;
  }

  /** Relays what a read holds, or a part of it. */
  write(chunk: Buffer): void {
    if (this.#events !== null) {
      const { heldCount } = this.#events;
      if (this.#readMs === 0) this.#readMs = performance.now();
      this.#out.push(...this.#events.push(chunk, this.#readMs));
      this.#watchHolding(this.#events, heldCount);
      return;
    }
    this.#out.push(chunk);
    this.#jsonTap?.push(chunk);
  }

  /** The read is over: what it held goes out in one write. */
  flush(): void {
    this.#readMs = 0;
    const { http } = this.#exchange;
    const pieces = this.#takeOut();
    // A head that came without any of the body goes by itself, at once.
    if (pieces.length === 0) http.flushHead();
    else if (!http.write(pieces) && !http.isFinished) this.#pauseSource(http);
  }

  /** The replica's response is complete: the rest of it goes out at the end of the turn. */
  end(trailers: Fields | null): void {
    this.#stopHolding();
    if (this.#events !== null) this.#out.push(...this.#events.end());
    this.#noteEnd();
    this.#last = { trailers: trailers && toClientTrailers(trailers, this.#connectionOptions) };
    this.#exchange.outbox.add(this);
  }

  /** Sends the last of a complete response. */
  sendOut(): void {
    if (this.#last !== null) this.#exchange.http.end(this.#takeOut(), this.#last.trailers);
  }

  /**
   * The replica broke off. An event stream ends with an error event; anything else by destroying the
   * connection, so that nobody takes it for whole. After `[DONE]` a break is no error.
   */
  breakOff(code: FailureCode): void {
    this.#stopHolding();
    const { http } = this.#exchange;
    if (this.#streamTap?.isDone) {
      this.end(null);
      return;
    }
    this.#exchange.note(this.#streamTap?.hasError ? 'upstream_error' : code, true);
    if (!this.isEventStream || this.#events === null) {
      // What had come is the client's: it goes out before the connection breaks.
      this.flush();
      http.destroy();
      return;
    }
    const errorEvent = Buffer.from(`${this.#events.isMidEvent ? '\n\n' : ''}${toErrorEvent(code)}`);
    this.#out.push(...this.#events.releaseHeld(), errorEvent);
    http.end(this.#takeOut());
  }

  /** Nothing more will be written: the client is gone or the exchange was cut. */
  stop(): void {
    this.#stopHolding();
  }

  /** Notes an error told in the stream; or, if it is silent, an end without `[DONE]` and finish reason. */
  #noteEnd(): void {
    const tap = this.#streamTap;
    if (tap === null) return;
    if (tap.hasError) this.#exchange.note('upstream_error');
    else if (!tap.isWhole && this.#exchange.status < 400) this.#exchange.noteTruncated();
  }

  #pauseSource(http: HttpExchange): void {
    this.#source?.pause();
    http.onDrain = () => this.#source?.resume();
  }

  #takeOut(): readonly Buffer[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #watchHolding(events: EventRelay, heldCountBefore: number): void {
    if (events.isHolding && events.heldCount === heldCountBefore) return;
    this.#stopHolding();
    if (!events.isHolding) return;
    const { heldCount } = events;
    this.#holdTimer = setTimeout(() => {
      // After a stall the awaited event may lie in the socket already: reads come before immediates.
      setImmediate(() => {
        if (!events.isHolding || events.heldCount !== heldCount || this.#last !== null) return;
        this.#out.push(...events.releaseHeld());
        this.flush();
      });
    }, HOLD_MS);
  }

  #stopHolding(): void {
    if (this.#holdTimer !== null) clearTimeout(this.#holdTimer);
    this.#holdTimer = null;
  }
}
