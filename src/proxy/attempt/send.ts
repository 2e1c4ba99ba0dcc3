import type { Fields } from '../../http/fields.ts';
import type { ResponseHead } from '../../http/head.ts';
import type { ResponseHandler, UpstreamConnection, UpstreamFault } from '../../http/upstream-connection.ts';
import { sizeOf } from '../../http/write-message.ts';
import type { Replica } from '../../replicas/data/replica.ts';
import type { Abandonable, Exchange } from '../exchange.ts';
import type { FailureCode } from '../failure.ts';
import type { Sendable } from '../outbox.ts';
import { Relay, type RelayedResponse, type RelayOptions } from '../response/relay.ts';
import { type RelayedHead, toRelayedHead, toUpstreamHead } from './headers.ts';

/** How one attempt ended. */
export type AttemptOutcome =
  /** A response was relayed, wholly or up to where it broke off: the exchange is decided. */
  | { readonly kind: 'relayed'; readonly statusCode: number }
  /** Drained before the request was written: nothing was sent. */
  | { readonly kind: 'drained' }
  /** Refused, unresolved, timed out or untrusted: nothing was sent. */
  | { readonly kind: 'not_connected'; readonly cause: unknown }
  /** The engine still loads its model. `relayAnswer` gives the client what it answered, if nobody else serves. */
  | { readonly kind: 'loading'; readonly statusCode: number; readonly relayAnswer: () => void }
  /** A reused keep-alive connection was reset before the first response byte. */
  | { readonly kind: 'reset_on_reuse'; readonly cause: unknown }
  /** The replica refused the stream options that we put in. */
  | { readonly kind: 'usage_refused'; readonly statusCode: number }
  | { readonly kind: 'failed'; readonly code: FailureCode; readonly cause: unknown }
  /** The client left, or the exchange was cut, before a response began. */
  | { readonly kind: 'abandoned' };

/** One request to one replica. */
export interface AttemptRequest {
  readonly replica: Replica;
  readonly exchange: Exchange;
  readonly traceparent: string;
  /** The pieces of the body, in order; null: a request without one. Taken out when they are written. */
  body: readonly Buffer[] | null;
  /** Use a connection that was never used before. */
  readonly onFreshConnection: boolean;
  /** Whether include_usage was put in, so that a refusal of it is ours to repair. */
  readonly didInjectUsage: boolean;
  readonly relay: RelayOptions;
  /** Called when all of the request was handed to the system. `isReused`: by a connection that may turn out dead. */
  readonly onWritten: (isReused: boolean) => void;
  /** Called when the replica's response begins to go to the client. */
  readonly onResponse: (response: RelayedResponse) => void;
}

export interface SendSettings {
  readonly firstByteMs: number;
  readonly idleMs: number;
}

/** Sends one request to one replica and relays what comes back. Never rejects. */
export function send(request: AttemptRequest, settings: SendSettings): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(request, settings, resolve).start());
}

/** Bytes of an answer that are looked through before it is known what becomes of it. */
const HELD_BYTES = 64 * 1024;

/** An answer that is held until it is known whether the client gets it. */
interface HeldAnswer {
  readonly head: RelayedHead;
  readonly arrivedMs: number;
  readonly chunks: Buffer[];
  sizeBytes: number;
}

/** One try at one replica. */
class Attempt implements ResponseHandler, Abandonable, Sendable {
  readonly #request: AttemptRequest;
  readonly #settings: SendSettings;
  readonly #resolve: (outcome: AttemptOutcome) => void;
  #connection: UpstreamConnection | null = null;
  #isReused = false;
  #relay: Relay | null = null;
  #held: HeldAnswer | null = null;
  #statusCode = 0;
  #isOver = false;

  constructor(request: AttemptRequest, settings: SendSettings, resolve: (outcome: AttemptOutcome) => void) {
    this.#request = request;
    this.#settings = settings;
    this.#resolve = resolve;
  }

  start(): void {
    const { exchange, replica, onFreshConnection } = this.#request;
    exchange.attempt = this;
    this.#connection = onFreshConnection ? null : replica.upstream.takeIdle();
    if (this.#connection === null) this.#connect();
    else exchange.outbox.add(this);
  }

  /** Sends on a kept connection, after what arrived in this turn was read: also what says that it is dead. */
  sendOut(): void {
    const connection = this.#connection;
    if (connection === null) return;
    if (connection.isClosed && !this.#isOver) {
      this.start();
      return;
    }
    this.#sendOn(connection);
  }

  #connect(): void {
    this.#request.replica.upstream.open((error, connection) => {
      this.#connection = connection;
      if (connection !== null) this.#sendOn(connection);
      else if (!this.#isOver) this.#finish({ kind: 'not_connected', cause: error });
    });
  }

  /** In the tick in which the request is written: the last moment at which a drain still counts. */
  #sendOn(connection: UpstreamConnection): void {
    const { replica, exchange, traceparent, body } = this.#request;
    if (this.#isOver || replica.isDrained) {
      this.#connection = null;
      replica.upstream.returnUnused(connection);
      this.#finish({ kind: 'drained' });
      return;
    }
    const { head, http, requestId } = exchange;
    const headText = toUpstreamHead(
      head,
      { host: replica.hostField, path: replica.pathPrefix + head.target },
      { requestId, traceparent, apiKey: replica.config.apiKey },
      http,
      body === null ? null : sizeOf(body),
    );
    const { firstByteMs, idleMs } = this.#settings;
    this.#isReused = connection.exchangeCount > 0;
    this.#request.body = null;
    connection.send({ method: head.method, headText, body: body ?? NO_BODY, firstByteMs, idleMs }, this);
  }

  onWritten(): void {
    this.#request.onWritten(this.#isReused);
  }

  onHead(responseHead: ResponseHead, atMs: number): void {
    const { replica, didInjectUsage } = this.#request;
    const head = toRelayedHead(responseHead);
    const { status } = head;
    this.#statusCode = status;
    const mayRefuseUsage = didInjectUsage && (status === 400 || status === 422);
    const mayBeLoading = status === 503 && replica.engine === 'llamacpp' && head.isJson;
    if (mayRefuseUsage || mayBeLoading) {
      this.#held = { head, arrivedMs: atMs, chunks: [], sizeBytes: 0 };
    } else {
      replica.noteAnswered();
      this.#startRelay(head, atMs);
    }
  }

  onData(view: Buffer): void {
    if (this.#held === null) {
      this.#relay?.write(view);
      return;
    }
    this.#held.chunks.push(view);
    this.#held.sizeBytes += view.length;
    if (this.#held.sizeBytes >= HELD_BYTES) this.#decideHeld(this.#held);
  }

  onReadEnd(): void {
    this.#relay?.flush();
  }

  onEnd(trailers: Fields): void {
    if (this.#held !== null) this.#decideHeld(this.#held);
    if (this.#isOver) return;
    this.#relay?.end(trailers);
    this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
  }

  onFault(fault: UpstreamFault, cause: unknown, hasBytes: boolean): void {
    if (this.#isOver) return;
    const code = fault === 'timed_out' ? 'upstream_timeout' : 'upstream_failed';
    if (this.#relay !== null) {
      this.#breakOff(this.#relay, code);
      this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
    } else if (fault === 'closed' && this.#isReused && !hasBytes) {
      this.#finish({ kind: 'reset_on_reuse', cause });
    } else {
      this.#finish({ kind: 'failed', code, cause });
    }
  }

  /** The client left or the exchange was cut: the replica is told at once. */
  abandon(cause: 'client_closed' | 'shutting_down'): void {
    if (this.#isOver) return;
    if (this.#relay !== null && cause === 'shutting_down') this.#breakOff(this.#relay, cause);
    else this.#relay?.stop();
    this.#dropConnection();
    this.#finish(
      this.#relay === null ? { kind: 'abandoned' } : { kind: 'relayed', statusCode: this.#statusCode },
    );
  }

  #startRelay(head: RelayedHead, arrivedMs: number): void {
    const { exchange, relay, replica, onResponse, didInjectUsage } = this.#request;
    // The replica compresses although it was asked not to: what our option adds to its streams cannot be
    // taken out again, so that it is not put in any more.
    if (didInjectUsage && head.isEventStream && head.isEncoded) replica.refusesIncludeUsage = true;
    const connection = this.#connection;
    const isRemembered = relay.undo?.movedMember === 'systemFingerprint' && connection !== null;
    const started = new Relay(exchange, head, relay, {
      source: connection,
      arrivedMs,
      remembered: isRemembered ? replica.fingerprintOf(connection) : { text: null },
    });
    this.#relay = started;
    onResponse(started);
  }

  #decideHeld(held: HeldAnswer): void {
    const { replica } = this.#request;
    this.#held = null;
    const body = Buffer.concat(held.chunks);
    const start = body.subarray(0, HELD_BYTES);
    if (held.head.status === 503) {
      if (isLoading(start)) {
        this.#dropConnection();
        const relayAnswer = () => this.#relayWhole(held, body);
        this.#finish({ kind: 'loading', statusCode: held.head.status, relayAnswer });
        return;
      }
    } else if (start.includes('stream_options')) {
      this.#dropConnection();
      this.#finish({ kind: 'usage_refused', statusCode: held.head.status });
      return;
    }
    replica.noteAnswered();
    this.#startRelay(held.head, held.arrivedMs);
    if (body.length > 0) this.#relay?.write(body);
  }

  /** Gives the client an answer that was held, when the attempt is over. */
  #relayWhole({ head, arrivedMs }: HeldAnswer, body: Buffer): void {
    if (this.#request.exchange.isFinished) return;
    this.#startRelay(head, arrivedMs);
    this.#relay?.write(body);
    this.#relay?.end(null);
  }

  /** Closes the connection if the response is still under way on it. One that was not used goes back by itself. */
  #dropConnection(): void {
    if (this.#connection?.isBusy === true) this.#connection.destroy();
  }

  /** However it ends, the exchange does. */
  #breakOff(relay: Relay, code: FailureCode): void {
    try {
      relay.breakOff(code);
    } catch (error) {
      this.#request.exchange.http.destroy();
      throw error;
    }
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request.exchange.attempt = null;
    this.#resolve(outcome);
  }
}

const NO_BODY: readonly Buffer[] = [];

/** How llama.cpp's server says that it loads its model (server.cpp, `middleware_server_state`). */
function isLoading(body: Buffer): boolean {
  try {
    const { error } = JSON.parse(body.toString('utf8')) as {
      readonly error?: { readonly type?: unknown; readonly message?: unknown };
    };
    return error?.type === 'unavailable_error' && error.message === 'Loading model';
  } catch {
    return false;
  }
}
