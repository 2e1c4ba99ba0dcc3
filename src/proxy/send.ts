import type { Dispatcher } from 'undici';
import type { Connection, ConnectionAwareHandler } from '../replicas/connections.ts';
import type { Replica } from '../replicas/replica.ts';
import type { Abandonable, Exchange } from './exchange.ts';
import type { FailureCode } from './failure.ts';
import { toClientHeaders } from './headers.ts';
import type { Sendable } from './outbox.ts';
import { Relay, type RelayOptions, type ResponseFacts, type ResponseHead } from './relay.ts';
import { toWritable } from './upstream-body.ts';

/** How one attempt ended. */
export type AttemptOutcome =
  /** A response was relayed, wholly or up to where it broke off: the exchange is decided. */
  | { readonly kind: 'relayed'; readonly statusCode: number }
  /** Drained before the request was written: nothing was sent. */
  | { readonly kind: 'drained' }
  /** Refused, unresolved, timed out or untrusted: nothing was sent. */
  | { readonly kind: 'not_connected'; readonly cause: unknown }
  /** A reused keep-alive connection was reset before the first response byte. */
  | { readonly kind: 'reset_on_reuse'; readonly cause: unknown }
  /** The replica refused the stream options that we put in. */
  | { readonly kind: 'usage_refused'; readonly statusCode: number }
  | { readonly kind: 'failed'; readonly code: FailureCode; readonly cause: unknown }
  /** The client left, or the exchange was cut, before a response began. */
  | { readonly kind: 'abandoned' };

export interface AttemptRequest {
  readonly replica: Replica;
  readonly exchange: Exchange;
  readonly method: 'GET' | 'POST';
  /** Path and query, without the replica's prefix. */
  readonly path: string;
  readonly headers: string[];
  /** The pieces of the body, in order. */
  readonly body: readonly Buffer[] | null;
  /** Use a connection that was never used before. */
  readonly onFreshConnection: boolean;
  /** Whether include_usage was put in, so that a refusal of it is ours to repair. */
  readonly didInjectUsage: boolean;
  readonly relay: RelayOptions;
  /** Called when the replica's response begins to go to the client. */
  readonly onResponse: (isEventStream: boolean, facts: () => ResponseFacts) => void;
}

export interface SendSettings {
  readonly firstByteMs: number;
  readonly idleMs: number;
}

/** Sends one request to one replica and relays what comes back. Never rejects. */
export function send(request: AttemptRequest, settings: SendSettings): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(request, settings, resolve).start());
}

/** Bytes of a 400 or 422 that are looked through for `stream_options`. */
const REFUSAL_BYTES = 64 * 1024;

/** A response that is held until it is known whether it refuses our stream options. */
interface HeldRefusal {
  readonly head: ResponseHead;
  readonly chunks: Buffer[];
  sizeBytes: number;
}

/** One try at one replica, as undici's handler of it. */
class Attempt implements ConnectionAwareHandler, Abandonable, Sendable {
  connection: Connection | null = null;
  readonly #request: AttemptRequest;
  readonly #settings: SendSettings;
  readonly #resolve: (outcome: AttemptOutcome) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #isReused = false;
  #relay: Relay | null = null;
  #refusal: HeldRefusal | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** When the replica was last heard of before anything was relayed: monotonic. */
  #heardMs = 0;
  #statusCode = 0;
  #isOver = false;

  constructor(request: AttemptRequest, settings: SendSettings, resolve: (outcome: AttemptOutcome) => void) {
    this.#request = request;
    this.#settings = settings;
    this.#resolve = resolve;
  }

  start(): void {
    const { exchange } = this.#request;
    exchange.attempt = this;
    exchange.outbox.add(this);
  }

  sendOut(): void {
    if (this.#isOver) return;
    const { replica, method, path, headers, body, onFreshConnection } = this.#request;
    const options = { method, path: replica.pathPrefix + path, ...toWritable(headers, body) };
    try {
      if (onFreshConnection) replica.connections.dispatchOnFresh(options, this);
      else replica.connections.dispatch(options, this);
    } catch (error) {
      // undici refuses what it cannot write, for example a path it holds to be invalid.
      this.#finish({ kind: 'failed', code: 'upstream_failed', cause: error });
    }
  }

  /** In the tick in which the request is written: the last moment at which a drain still counts. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) {
      controller.abort(new Error('abandoned'));
      return;
    }
    if (this.#request.replica.isDrained) {
      this.#finish({ kind: 'drained' });
      controller.abort(new Error('drained'));
      return;
    }
    this.connection?.countExchange();
    this.#isReused = (this.connection?.exchangeCount ?? 0) > 1;
    this.#timer = setTimeout(() => this.#timeOut(), this.#settings.firstByteMs);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    _headers: unknown,
    statusMessage?: string,
  ): void {
    // An informational response (RFC 9110 15.2) is not the one that counts.
    if (this.#isOver || statusCode < 200) return;
    this.#statusCode = statusCode;
    this.#request.replica.noteAnswered();
    const rawHeaders = controller.rawHeaders;
    const headers = toClientHeaders(Array.isArray(rawHeaders) ? rawHeaders : []);
    const head = { statusCode, statusMessage, headers };
    this.#watchIdle();
    const mayRefuseUsage = this.#request.didInjectUsage && (statusCode === 400 || statusCode === 422);
    if (mayRefuseUsage) this.#refusal = { head, chunks: [], sizeBytes: 0 };
    else this.#startRelay(controller, head);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#refusal === null) {
      this.#relay?.write(chunk);
      return;
    }
    this.#heardMs = performance.now();
    this.#refusal.chunks.push(chunk);
    this.#refusal.sizeBytes += chunk.length;
    if (this.#refusal.sizeBytes >= REFUSAL_BYTES) this.#decideRefusal(controller, this.#refusal);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) return;
    if (this.#refusal !== null) this.#decideRefusal(controller, this.#refusal);
    if (this.#isOver) return;
    const { rawTrailers } = controller;
    this.#relay?.end(Array.isArray(rawTrailers) ? rawTrailers : null);
    this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isOver) return;
    this.#fail('upstream_failed', error);
  }

  #startRelay(controller: Dispatcher.DispatchController, head: ResponseHead): void {
    const { exchange, relay, replica, onResponse, didInjectUsage } = this.#request;
    // The replica compresses although it was asked not to: what our option adds to its streams cannot be
    // taken out again, so that it is not put in any more.
    if (didInjectUsage && head.headers.isEventStream && head.headers.isEncoded) {
      replica.refusesIncludeUsage = true;
    }
    const remembered = this.connection?.fingerprint;
    const started = new Relay(exchange, controller, head, remembered ? { ...relay, remembered } : relay);
    this.#relay = started;
    onResponse(started.isEventStream, () => started.facts);
  }

  #decideRefusal(controller: Dispatcher.DispatchController, refusal: HeldRefusal): void {
    this.#refusal = null;
    const body = Buffer.concat(refusal.chunks);
    if (body.subarray(0, REFUSAL_BYTES).includes('stream_options')) {
      this.#finish({ kind: 'usage_refused', statusCode: refusal.head.statusCode });
      controller.abort(new Error('repeated without stream_options'));
      return;
    }
    this.#startRelay(controller, refusal.head);
    if (body.length > 0) this.#relay?.write(body);
  }

  #fail(code: FailureCode, cause: unknown): void {
    if (this.#relay !== null) {
      this.#relay.breakOff(code);
      this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
    } else if (code === 'upstream_timeout' || this.#statusCode !== 0) {
      this.#finish({ kind: 'failed', code, cause });
    } else if (this.#controller !== null) {
      const isRepeatable = this.#isReused && this.connection?.hasAnswered === false;
      this.#finish(isRepeatable ? { kind: 'reset_on_reuse', cause } : { kind: 'failed', code, cause });
    } else {
      // Never written: a failure to connect, unless a kept connection was reset just before it was used.
      const wasConnected = this.connection?.isConnected === true && this.connection.exchangeCount > 0;
      this.#finish({ kind: wasConnected ? 'reset_on_reuse' : 'not_connected', cause });
    }
  }

  /**
   * From the response head on: the time between two reads. The timer is not moved with each: it looks when the last
   * one was, and waits for the rest.
   */
  #watchIdle(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#heardMs = performance.now();
    this.#waitIdle(this.#settings.idleMs);
  }

  #waitIdle(restMs: number): void {
    this.#timer = setTimeout(() => {
      const lastReadMs = this.#relay?.lastReadMs ?? this.#heardMs;
      const newRestMs = lastReadMs + this.#settings.idleMs - performance.now();
      if (newRestMs > 0) this.#waitIdle(newRestMs);
      else this.#timeOut();
    }, restMs);
  }

  #timeOut(): void {
    if (this.#isOver) return;
    if (this.#relay?.isBlocked) {
      // It is the client that does not read: it has had as long as a replica may be silent.
      this.#request.exchange.note('client_closed', true);
      this.#request.exchange.response.destroy();
      return;
    }
    this.#fail('upstream_timeout', null);
    this.#controller?.abort(new Error('timed out'));
  }

  /** The client left or the exchange was cut: the replica is told at once. */
  abandon(cause: 'client_closed' | 'shutting_down'): void {
    if (this.#isOver) return;
    if (cause === 'shutting_down') this.#relay?.breakOff(cause);
    else this.#relay?.stop();
    this.#finish(
      this.#relay === null ? { kind: 'abandoned' } : { kind: 'relayed', statusCode: this.#statusCode },
    );
    this.#controller?.abort(new Error('abandoned'));
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#request.exchange.attempt = null;
    this.#resolve(outcome);
  }
}
