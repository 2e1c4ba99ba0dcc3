import { ChunkedBody } from './chunked-body.ts';
import { EventRelay } from './event-relay.ts';
import type { Exchange } from './exchange.ts';
import { type FailureCode, toErrorEvent } from './failure.ts';
import { type ReplicaHeaders, toFieldText } from './headers.ts';
import type { Sendable } from './outbox.ts';
import { JsonTap, type StreamTap } from './response-tap.ts';
import type { RememberedMember, UndoRules } from './undo-usage.ts';

/** How long a finishing event may wait for the event after it. */
const HOLD_MS = 50;

/** Where a response comes from, as far as it can be held back. undici's controller is one. */
export interface ResponseSource {
  readonly paused: boolean;
  pause(): void;
  resume(): void;
}

/** What a replica's response head says. */
export interface ResponseHead {
  readonly statusCode: number;
  readonly statusMessage: string | undefined;
  readonly headers: ReplicaHeaders;
}

export interface RelayOptions {
  readonly maxEventBytes: number;
  /** What has to be undone in the stream; null when usage was not injected. */
  readonly undo: UndoRules | null;
  /** What is known of the connection that the response comes on. */
  readonly remembered?: RememberedMember;
  /** Absent for responses that leave no record. */
  readonly createStreamTap: (() => StreamTap) | null;
}

/** What a relay has learnt of the response, once it is over. */
export type ResponseFacts = StreamTap | JsonTap | null;

/**
 * Copies one response to the client: one read, one write, however many chunks or events the read holds. The replica is
 * paused while the client does not read. Knows how each kind of response ends when the replica breaks off.
 */
export class Relay implements Sendable {
  readonly isEventStream: boolean;
  /** When the last read came, on the clock of performance.now(); the first is that of the head. */
  lastReadMs = performance.now();
  readonly #exchange: Exchange;
  readonly #source: ResponseSource;
  readonly #events: EventRelay | null = null;
  readonly #streamTap: StreamTap | null = null;
  readonly #jsonTap: JsonTap | null = null;
  readonly #body: ChunkedBody;
  #holdTimer: NodeJS.Timeout | null = null;
  /** What goes out when the read that is being looked at is over. */
  #out: Buffer[] = [];
  #isFlushDue = false;
  #isHeadOut = false;
  /** Null until the response is complete. */
  #trailers: readonly [string, string][] | null = null;

  constructor(exchange: Exchange, source: ResponseSource, head: ResponseHead, options: RelayOptions) {
    this.#exchange = exchange;
    this.#source = source;
    this.isEventStream = head.headers.isEventStream;
    // Nothing is read of a response that leaves no record, or that is compressed.
    const createTap = head.headers.isEncoded ? null : options.createStreamTap;
    if (this.isEventStream && createTap !== null) {
      this.#streamTap = createTap();
      this.#events = new EventRelay({
        maxEventBytes: options.maxEventBytes,
        undo: options.undo,
        remembered: options.remembered ?? { text: null },
        tap: this.#streamTap,
      });
    } else if (head.headers.isJson && createTap !== null && head.statusCode < 400) {
      this.#jsonTap = new JsonTap();
    }
    this.#body = this.#begin(head);
    this.#flushSoon();
  }

  /** What the response told so far. */
  get facts(): ResponseFacts {
    return this.#streamTap ?? this.#jsonTap;
  }

  /** Whether the client is not reading as fast as the replica sends. */
  get isBlocked(): boolean {
    return this.#source.paused;
  }

  /** Relays what a read holds, or a part of it. */
  write(chunk: Buffer): void {
    this.#flushSoon();
    if (this.#events !== null) {
      const { heldCount } = this.#events;
      this.#out.push(...this.#events.push(chunk, this.lastReadMs));
      this.#watchHolding(this.#events, heldCount);
      return;
    }
    this.#out.push(chunk);
    this.#jsonTap?.push(chunk);
  }

  /** The replica's response is complete. */
  end(rawTrailers: readonly (Buffer | string)[] | null): void {
    this.#stopHolding();
    if (this.#events !== null) this.#out.push(...this.#events.end());
    this.#noteEnd();
    this.#trailers = toPairs(rawTrailers ?? []);
    this.#exchange.outbox.add(this);
  }

  /** Sends the last of a complete response. */
  sendOut(): void {
    if (this.#trailers === null || this.#exchange.response.destroyed) return;
    this.#body.end(this.#takeOut(), this.#trailers);
  }

  /**
   * The replica broke off. An event stream ends with an error event; anything else by destroying the
   * connection, so that nobody takes it for whole. After `[DONE]` a break is no error.
   */
  breakOff(code: FailureCode): void {
    this.#stopHolding();
    const { response } = this.#exchange;
    if (this.#streamTap?.isDone) {
      this.end(null);
      return;
    }
    this.#exchange.note(this.#streamTap?.hasError ? 'upstream_error' : code, true);
    if (!this.isEventStream || this.#events === null) {
      response.destroy();
      return;
    }
    const errorEvent = Buffer.from(`${this.#events.isMidEvent ? '\n\n' : ''}${toErrorEvent(code)}`);
    this.#out.push(...this.#events.releaseHeld(), errorEvent);
    this.#body.end(this.#takeOut(), []);
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

  #begin(head: ResponseHead): ChunkedBody {
    const { response, requestId } = this.#exchange;
    response.sendDate = false;
    response.writeHead(head.statusCode, head.statusMessage, [
      ...head.headers.fields,
      'X-Request-Id',
      requestId,
    ]);
    return new ChunkedBody(response);
  }

  /** Microtasks come when the read has been looked at to its end, before anything else happens. */
  #flushSoon(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.lastReadMs = performance.now();
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushDue = false;
    const { response } = this.#exchange;
    if (this.#trailers !== null || response.writableEnded || response.destroyed) return;
    const pieces = this.#takeOut();
    if (pieces.length > 0) {
      if (!this.#body.write(pieces) && !response.destroyed) this.#pauseSource();
    } else if (!this.#isHeadOut) {
      // It came without any of the body, and goes by itself, at once.
      response.flushHeaders();
    }
    this.#isHeadOut = true;
  }

  #pauseSource(): void {
    this.#source.pause();
    this.#exchange.response.once('drain', () => this.#source.resume());
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
        if (!events.isHolding || events.heldCount !== heldCount) return;
        this.#out.push(...events.releaseHeld());
        this.#flush();
      });
    }, HOLD_MS);
  }

  #stopHolding(): void {
    if (this.#holdTimer !== null) clearTimeout(this.#holdTimer);
    this.#holdTimer = null;
  }
}

function toPairs(raw: readonly (Buffer | string)[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([toFieldText(raw[i]), toFieldText(raw[i + 1])]);
  return pairs;
}
