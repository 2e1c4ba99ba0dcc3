import type { Fingerprint } from '#replicas';
import { type HttpExchange, isBodiless, type OutgoingHead } from '#wire/client';
import { type Fields, sizeOf } from '#wire/message';
import { type RelayedHead, toClientTrailers } from '../attempt/headers.ts';
import type { Exchange } from '../exchange.ts';
import type { FailureCode } from '../failure.ts';
import type { Sendable } from '../outbox.ts';
import { EventRelay } from './events/event-relay.ts';
import { JsonTap } from './json-tap.ts';
import { ModelRewriter } from './model-rewriter.ts';
import { OutgoingPieces } from './outgoing-pieces.ts';
import type { ResponseReading, ResponseUse } from './response-reading.ts';
import { StreamTap } from './stream-tap.ts';
import { UsageTally } from './usage-tally.ts';

/** How long a finishing event may wait for the event after it. */
const HOLD_MS = 50;

/** The same if without that event it would lack a fingerprint that nothing else has shown. */
const HOLD_FOR_FINGERPRINT_MS = 1000;

/** How much of an answer with a length is held until its new length is known. */
const HELD_BYTES = 64 * 1024;

/** Where a response comes from: it can be paused. */
export interface ResponseSource {
  pause(): void;
  resume(): void;
}

/** Where a response came from, and when. */
export interface ResponseOrigin {
  /** Null: the whole response is here. */
  readonly source: ResponseSource | null;
  /** When its head came, and what came in the same read. Monotonic milliseconds. */
  readonly arrivedMs: number;
  /** The fingerprint of the server process that sends it. */
  readonly fingerprint: Fingerprint;
}

/** What is known of a response that goes to the client. */
export interface RelayedResponse {
  readonly isEventStream: boolean;
  /** What it has said so far; null if it is not read. */
  readonly facts: StreamTap | JsonTap | null;
}

/**
 * Copies one response to the client. One read becomes one write, however many chunks or events the read holds. The
 * replica is paused while the client does not read. Each kind of response has its way to end when the replica breaks
 * off.
 */
export class Relay implements RelayedResponse, Sendable {
  readonly isEventStream: boolean;
  readonly #exchange: Exchange;
  readonly #connectionOptions: ReadonlySet<string> | null;
  readonly #source: ResponseSource | null;
  readonly #reading: ResponseReading | null;
  readonly #events: EventRelay | null = null;
  readonly #streamTap: StreamTap | null = null;
  readonly #jsonTap: JsonTap | null = null;
  /** Null once the id is told, or if nobody wants it. */
  #onResponseId: ((id: string) => void) | null;
  readonly #rewriter: ModelRewriter | null = null;
  /** Whether only its content, or the end of the connection, says where it ends. */
  readonly #endsWithConnection: boolean;
  /** The head of an answer whose length will change. It waits for the answer's end, or for its first 64 KiB. */
  #unsent: OutgoingHead | null = null;
  /** When the current read came; 0 until its time is known. */
  #readMs: number;
  #holdTimer: NodeJS.Timeout | null = null;
  /** What goes out at the end of the current read. */
  readonly #out = new OutgoingPieces();
  /** Null until the response is complete. */
  #last: { readonly trailers: Fields | null } | null = null;

  constructor(
    exchange: Exchange,
    head: RelayedHead,
    { reading, modelName, routeLines }: ResponseUse,
    origin: ResponseOrigin,
  ) {
    this.#exchange = exchange;
    this.#source = origin.source;
    this.#readMs = origin.arrivedMs;
    this.isEventStream = head.isEventStream;
    this.#connectionOptions = head.connectionOptions;
    this.#reading = reading;
    this.#onResponseId = head.status < 300 ? (reading?.onResponseId ?? null) : null;
    // A compressed response cannot be read, and no name in it replaced.
    const isRead = reading !== null && !head.isEncoded;
    if (isRead && this.isEventStream) {
      this.#streamTap = new StreamTap(exchange.arrivedMs, reading.endpoint, new UsageTally(reading));
      this.#events = new EventRelay(reading, origin.fingerprint, this.#streamTap);
    } else if (isRead && head.isJson && head.status < 400) {
      this.#jsonTap = new JsonTap(reading);
    }
    const { http, requestId, admission } = exchange;
    const ownLines = `X-Request-Id: ${requestId}\r\n${routeLines}`;
    const replicaLines = routeLines === '' ? head.fieldLines : withoutRoute(head.fieldLines);
    const fieldLines =
      admission === null
        ? replicaLines + ownLines
        : withoutRateLimits(replicaLines) + ownLines + admission.fieldLines();
    const { status, reason, contentLength } = head;
    this.#endsWithConnection = head.endsWithConnection;
    const outgoing = { status, reason, fieldLines, contentLength };
    if (modelName !== null && !head.isEncoded && (this.isEventStream || head.isJson)) {
      this.#rewriter = new ModelRewriter(modelName, this.isEventStream);
      if (contentLength !== null && !isBodiless(status)) {
        this.#unsent = outgoing;
        return;
      }
    }
    http.begin(outgoing);
  }

  /** What the response has said so far. */
  get facts(): StreamTap | JsonTap | null {
    return this.#streamTap ?? this.#jsonTap;
  }

  /** Relays the bytes of a read, or a part of them. */
  write(chunk: Buffer): void {
    if (this.#events !== null) {
      const { heldCount } = this.#events;
      if (this.#readMs === 0) this.#readMs = performance.now();
      this.#out.addAll(this.#events.push(chunk, this.#readMs));
      if (this.#onResponseId !== null) this.#tellId(this.#streamTap?.responseId);
      this.#watchHolding(this.#events, heldCount);
      return;
    }
    this.#out.add(chunk);
    this.#jsonTap?.push(chunk);
  }

  /** The read is over: its bytes go out in one write. */
  flush(): void {
    this.#readMs = 0;
    const { http } = this.#exchange;
    if (this.#unsent !== null && this.#out.sizeBytes < HELD_BYTES) return;
    this.#begin(null);
    const pieces = this.#takeOut();
    // A head that came without any body bytes goes out at once.
    if (pieces.length === 0) http.flushHead();
    else if (!http.write(pieces) && !http.isFinished) this.#pauseSource(http);
  }

  /** The replica's response is complete: the rest of it goes out at the end of the turn. */
  end(trailers: Fields | null): void {
    this.#stopHolding();
    if (this.#events !== null) this.#out.addAll(this.#events.end());
    if (this.#onResponseId !== null) this.#tellId(this.facts?.responseId);
    this.#noteEnd();
    this.#last = { trailers: trailers && toClientTrailers(trailers, this.#connectionOptions) };
    this.#exchange.outbox.add(this);
  }

  /** Sends the rest of a complete response. */
  sendOut(): void {
    if (this.#last === null) return;
    const pieces = this.#takeOut();
    this.#begin(sizeOf(pieces));
    this.#exchange.http.end(pieces, this.#last.trailers);
  }

  /**
   * The replica broke off. An event stream ends with an error event. Any other response ends by destroying the
   * connection, so that it cannot be mistaken for complete. A break after the end mark is no error, nor is one behind
   * a whole JSON object that had neither a length nor chunks.
   */
  breakOff(code: FailureCode): void {
    this.#stopHolding();
    const { http } = this.#exchange;
    if (this.#streamTap?.isDone || (this.#endsWithConnection && this.#jsonTap?.isWhole)) {
      this.end(null);
      return;
    }
    this.#exchange.note(this.#streamTap?.hasError ? 'upstream_error' : code, true);
    if (this.#events === null || this.#reading === null) {
      // The bytes that have come go out before the connection breaks.
      this.#begin(null);
      this.flush();
      http.destroy();
      return;
    }
    const errorEvent = Buffer.from(
      `${this.#events.isMidEvent ? '\n\n' : ''}${this.#reading.endpoint.toErrorEvent(code)}`,
    );
    this.#out.addAll([...this.#events.releaseHeld(), errorEvent]);
    http.end(this.#takeOut());
  }

  /** Nothing more will be written: the client left or the exchange was cut. */
  stop(): void {
    this.#stopHolding();
  }

  #tellId(id: string | null | undefined): void {
    if (id === null || id === undefined) return;
    this.#onResponseId?.(id);
    this.#onResponseId = null;
  }

  /** Notes an error that the stream reported, else an end without end mark and finish reason. */
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

  /** Begins the response if its head waits. */
  #begin(contentLength: number | null): void {
    if (this.#unsent === null) return;
    this.#exchange.http.begin({ ...this.#unsent, contentLength });
    this.#unsent = null;
  }

  #takeOut(): readonly Buffer[] {
    const out = this.#out.take();
    return this.#rewriter === null ? out : this.#rewriter.rewrite(out);
  }

  #watchHolding(events: EventRelay, heldCountBefore: number): void {
    if (events.isHolding && events.heldCount === heldCountBefore) return;
    this.#stopHolding();
    if (!events.isHolding) return;
    const { heldCount } = events;
    this.#holdTimer = setTimeout(
      () => {
        // After a stall the awaited event may already be in the socket: reads come before immediates.
        setImmediate(() => {
          if (!events.isHolding || events.heldCount !== heldCount || this.#last !== null) return;
          this.#out.addAll(events.releaseHeld());
          this.flush();
        });
      },
      events.holdsForFingerprint ? HOLD_FOR_FINGERPRINT_MS : HOLD_MS,
    );
  }

  #stopHolding(): void {
    if (this.#holdTimer !== null) clearTimeout(this.#holdTimer);
    this.#holdTimer = null;
  }
}

/** What this gateway says of the route counts, not what one behind it says. */
function withoutRoute(fieldLines: string): string {
  return fieldLines.replace(/^x-gateway-(?:replica|route-reason):.*\r\n/gim, '');
}

/** The limits of the gateway count for the client, not those of a replica. */
function withoutRateLimits(fieldLines: string): string {
  return fieldLines.replace(/^x-ratelimit-[^:]*:.*\r\n/gim, '');
}
