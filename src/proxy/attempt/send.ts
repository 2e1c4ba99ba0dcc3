import { Fingerprint } from '#replicas';
import { type Fields, type ResponseHead, sizeOf } from '#wire/message';
import type { ResponseHandler, UpstreamConnection, UpstreamFault } from '#wire/upstream';
import type { Abandonable } from '../exchange.ts';
import type { FailureCode } from '../failure.ts';
import type { Sendable } from '../outbox.ts';
import { Relay } from '../response/relay.ts';
import type { AttemptOutcome, AttemptRequest, RunningStream } from './attempt.ts';
import type { AnswerEnd, AnswerListener } from './copying.ts';
import { type RelayedHead, toRelayedHead, toUpstreamHead } from './headers.ts';
import { type AnswerTraits, HELD_BYTES, isHeld, judgeHeld, type RetryPolicy } from './judge-answer.ts';

export interface SendSettings {
  /** The gateway's name in Via. */
  readonly viaName: string;
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** The time-out of a stream that is silent after its first byte. */
  readonly silentMs: number;
  /** The fields of requests that replicas must not see: API keys, and the tenant that a client claims; null: none. */
  readonly withheldFields: ReadonlySet<string> | null;
  /** Null: every status is relayed. */
  readonly retry: RetryPolicy | null;
}

/** Sends one request to one replica and relays what comes back. Never rejects. */
export function send(request: AttemptRequest, settings: SendSettings): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(request, settings, resolve).start());
}

/** An answer that is held until the gateway decides whether the client gets it. */
interface HeldAnswer {
  readonly head: RelayedHead;
  readonly traits: AnswerTraits;
  readonly arrivedMs: number;
  readonly chunks: Buffer[];
  sizeBytes: number;
}

/** One attempt at one replica. */
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
  /** Hears the answer too. */
  #listener: AnswerListener | null = null;

  constructor(request: AttemptRequest, settings: SendSettings, resolve: (outcome: AttemptOutcome) => void) {
    this.#request = request;
    this.#settings = settings;
    this.#resolve = resolve;
  }

  start(): void {
    const { exchange, replica, onFreshConnection } = this.#request;
    exchange.startWork(this);
    this.#connection = onFreshConnection ? null : replica.upstream.takeIdle();
    if (this.#connection === null) this.#connect();
    else exchange.outbox.add(this);
  }

  /**
   * Sends on a kept connection, after everything that arrived in this turn was read: it may say that the connection is
   * dead.
   */
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

  /** Writes the request. This is the last moment at which a drain counts, or that the replica became a shadow. */
  #sendOn(connection: UpstreamConnection): void {
    const { replica, exchange, trace, body, upload } = this.#request;
    if (this.#isOver || replica.isClosed) {
      this.#connection = null;
      replica.upstream.returnUnused(connection);
      this.#finish({ kind: 'drained' });
      return;
    }
    const { head, http, requestId } = exchange;
    const { viaName, firstByteMs, idleMs, withheldFields } = this.#settings;
    const headText = toUpstreamHead(
      head,
      { host: replica.hostField, path: replica.pathPrefix + head.target },
      { requestId, trace, apiKey: replica.config.apiKey, viaName, withheldFields },
      http,
      upload !== null ? upload.announcedBytes : body === null ? null : sizeOf(body),
    );
    this.#isReused = connection.exchangeCount > 0;
    this.#request.body = null;
    const whole = upload === null ? (body ?? NO_BODY) : null;
    connection.send({ method: head.method, headText, body: whole, firstByteMs, idleMs }, this);
    if (whole !== null)
      this.#listener = this.#request.observer?.onSent?.(this.#request, whole, connection.sentMs) ?? null;
    upload?.start(connection, (code) => this.#failUpload(code));
  }

  /** Before the head of the response, what the request asks for counts. */
  get stream(): RunningStream | null {
    const { stream, asksStream } = this.#request;
    if (this.#held !== null) return null;
    return (this.#relay?.isEventStream ?? asksStream) ? stream : null;
  }

  onWritten(): void {
    this.#request.observer?.onWritten(this.#request, this.#isReused);
  }

  onHead(responseHead: ResponseHead, atMs: number): void {
    this.#listener?.onHead(responseHead, atMs);
    const { replica } = this.#request;
    const head = toRelayedHead(responseHead);
    const { status } = head;
    this.#statusCode = status;
    const { exchange, upload } = this.#request;
    // The rest of the body is not read once the response is over.
    if (upload?.isComplete === false) exchange.http.isLast = true;
    const traits = status < 400 ? null : this.#traitsOf(head);
    if (traits !== null && isHeld(traits)) {
      this.#held = { head, traits, arrivedMs: atMs, chunks: [], sizeBytes: 0 };
    } else {
      replica.noteAnswered(status, this.#request.reading !== null);
      this.#startRelay(head, atMs);
    }
  }

  onData(view: Buffer): void {
    if (this.#held === null) this.#relay?.write(view);
    else this.#hold(this.#held, view);
    // The client comes first.
    this.#listener?.onData(view);
  }

  #hold(held: HeldAnswer, view: Buffer): void {
    held.chunks.push(view);
    held.sizeBytes += view.length;
    if (held.sizeBytes >= HELD_BYTES) this.#decideHeld(held, false);
  }

  onReadEnd(): void {
    this.#relay?.flush();
  }

  onEnd(trailers: Fields): void {
    if (this.#held !== null) this.#decideHeld(this.#held, true);
    if (this.#isOver) return;
    this.#relay?.end(trailers);
    this.#tellOver('whole');
    this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
  }

  onFault(fault: UpstreamFault, cause: unknown, hasBytes: boolean): void {
    if (this.#isOver) return;
    if (this.#held === null && (hasBytes || !this.#isReused)) this.#tellOver('broken');
    const code = fault === 'timed_out' ? 'upstream_timeout' : 'upstream_failed';
    if (this.#relay !== null) {
      this.#breakOff(this.#relay, code);
      this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
    } else if (this.#held?.traits.isRetried) {
      this.#refuse('status_retried', this.#held, Buffer.concat(this.#held.chunks), code);
    } else if (fault === 'closed' && this.#isReused && !hasBytes) {
      this.#finish({ kind: 'reset_on_reuse', cause });
    } else {
      this.#finish({ kind: 'failed', code, cause });
    }
  }

  /** The client left or the exchange was cut: closes the replica's connection at once. */
  abandon(cause: 'client_closed' | 'shutting_down'): void {
    if (this.#isOver) return;
    if (this.#relay !== null && cause === 'shutting_down') this.#breakOff(this.#relay, cause);
    else this.#relay?.stop();
    this.#dropConnection();
    this.#tellOver('left');
    this.#finish(
      this.#relay === null ? { kind: 'abandoned' } : { kind: 'relayed', statusCode: this.#statusCode },
    );
  }

  /** The body cannot be sent to its end. */
  #failUpload(code: FailureCode): void {
    if (this.#isOver) return;
    this.#dropConnection();
    if (this.#relay === null) {
      this.#finish({ kind: 'failed', code, cause: null });
    } else {
      this.#breakOff(this.#relay, code);
      this.#finish({ kind: 'relayed', statusCode: this.#statusCode });
    }
  }

  /** Whether include_usage was inserted, so that we have to repair its refusal. */
  get #asksUsage(): boolean {
    const { reading } = this.#request;
    return reading !== null && reading.undo !== null;
  }

  #startRelay(head: RelayedHead, arrivedMs: number): Relay {
    const { exchange, reading, replica, observer } = this.#request;
    // The replica compresses although it was asked not to. What our option adds to its streams cannot be removed, so
    // the option is not inserted any more.
    if (this.#asksUsage && head.isEventStream && head.isEncoded) replica.noteStreamCompressed();
    const connection = this.#connection;
    const isRemembered = reading?.undo?.movedMember === 'systemFingerprint' && connection !== null;
    const started = new Relay(exchange, head, this.#request, {
      source: connection,
      arrivedMs,
      fingerprint: isRemembered ? replica.fingerprintOf(connection) : new Fingerprint(),
    });
    this.#relay = started;
    if (head.isEventStream) connection?.limitSilence(this.#settings.silentMs);
    observer?.onResponse(this.#request, started);
    return started;
  }

  #traitsOf({ status, isJson }: RelayedHead): AnswerTraits {
    const { replica, upload, mayRetryStatus } = this.#request;
    return {
      status,
      isJson,
      engine: replica.engine,
      asksUsage: this.#asksUsage,
      isRepeatable: upload === null,
      isRetried: mayRetryStatus && upload === null && this.#settings.retry?.statuses.has(status) === true,
    };
  }

  #decideHeld(held: HeldAnswer, isWhole: boolean): void {
    const { replica } = this.#request;
    const { status } = held.head;
    this.#held = null;
    const body = Buffer.concat(held.chunks);
    const judgement = judgeHeld(held.traits, body.subarray(0, HELD_BYTES), isWhole);
    if (judgement === 'usage_refused') {
      this.#dropConnection();
      this.#finish({ kind: judgement, statusCode: status });
    } else if (judgement !== 'relay') {
      this.#refuse(judgement, held, body, null);
    } else {
      replica.noteAnswered(status, this.#request.reading !== null);
      const relay = this.#startRelay(held.head, held.arrivedMs);
      if (body.length > 0) relay.write(body);
    }
  }

  /** The replica does not take the request. `fault`: how its answer broke off; null if it is complete. */
  #refuse(
    kind: 'loading' | 'status_retried',
    { head, arrivedMs }: HeldAnswer,
    body: Buffer,
    fault: FailureCode | null,
  ): void {
    const { replica, reading } = this.#request;
    if (kind === 'status_retried') replica.noteAnswered(head.status, reading !== null);
    this.#dropConnection();
    const relayAnswer = () => {
      const relay = this.#startRelay(head, arrivedMs);
      relay.write(body);
      if (fault === null) relay.end(null);
      else relay.breakOff(fault);
    };
    this.#finish({ kind, statusCode: head.status, relayAnswer });
  }

  /** Closes the connection if the response is still coming on it. An unused connection goes back by itself. */
  #dropConnection(): void {
    if (this.#connection?.isBusy === true) this.#connection.destroy();
  }

  /** Ends the response, and the exchange even if this throws. */
  #breakOff(relay: Relay, code: FailureCode): void {
    try {
      relay.breakOff(code);
    } catch (error) {
      this.#request.exchange.http.destroy();
      throw error;
    }
  }

  /** Tells who hears the answer that nothing follows, once. */
  #tellOver(end: AnswerEnd): void {
    this.#listener?.onOver(end);
    this.#listener = null;
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tellOver('refused');
    this.#request.upload?.stop();
    this.#request.exchange.endWork();
    this.#resolve(outcome);
  }
}

const NO_BODY: readonly Buffer[] = [];
