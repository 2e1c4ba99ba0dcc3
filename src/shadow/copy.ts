import { randomBytes, randomUUID } from 'node:crypto';
import type { ShadowSpan } from '#otel/span';
import type { SentRequest } from '#proxy';
import type { Lease } from '#replicas';
import type { ResponseHead } from '#wire/message';
import type { ResponseHandler, UpstreamConnection, UpstreamFault } from '#wire/upstream';
import { HeardAnswer } from './heard-answer.ts';
import type { PairSalt } from './output-digest.ts';

/** How long a copy may wait, as for a client's request. */
export interface CopyTimeouts {
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly silentMs: number;
}

/** What a copy is made from. */
export interface CopyStart {
  readonly sent: SentRequest;
  readonly lease: Lease;
  readonly salt: PairSalt;
  readonly timeouts: CopyTimeouts;
  /** The trace of the pair. */
  readonly traceId: string;
  readonly isAgain: boolean;
  readonly onOver: (copy: Copy) => void;
}

/** One copy of a request at a shadow. It holds a lease until it is over. */
export class Copy implements ResponseHandler {
  readonly stream = null;
  readonly #start: CopyStart;
  readonly #spanId = randomBytes(8).toString('hex');
  readonly #requestId = randomUUID();
  readonly #startEpochMs = Date.now();
  readonly #beganMs = performance.now();
  #connection: UpstreamConnection | null = null;
  #isReused = false;
  #answer: HeardAnswer | null = null;
  #outcome: ShadowSpan['outcome'] | null = null;
  #gpuSeconds: number | null = null;

  constructor(start: CopyStart) {
    this.#start = start;
  }

  /** What has come of the answer; null: the shadow could not be reached. */
  get answer(): HeardAnswer | null {
    return this.#answer;
  }

  get isOver(): boolean {
    return this.#outcome !== null;
  }

  /** Sends it now, or as soon as there is a connection. */
  send(): void {
    const { upstream } = this.#start.lease.replica;
    const idle = upstream.takeIdle();
    this.#isReused = idle !== null && !idle.isClosed;
    if (idle !== null && this.#isReused) this.#sendOn(idle);
    else this.#sendOnFresh();
  }

  #sendOnFresh(): void {
    const { upstream } = this.#start.lease.replica;
    upstream.open((error, connection) => {
      if (connection === null) {
        this.#start.lease.replica.noteNotConnected(error);
        this.#finish('not_connected');
      } else if (this.isOver) upstream.returnUnused(connection);
      else this.#sendOn(connection);
    });
  }

  /** Ends it at once. */
  cut(): void {
    if (this.isOver) return;
    this.#answer?.finish('unclear');
    this.#finish('cut');
    if (this.#connection?.isBusy === true) this.#connection.destroy();
  }

  onWritten(): void {}

  onHead(head: ResponseHead): void {
    const { lease, timeouts } = this.#start;
    lease.replica.noteAnswered(head.status, true);
    this.#answer?.onHead(head);
    if (this.#answer?.isStream) this.#connection?.limitSilence(timeouts.silentMs);
  }

  onData(view: Buffer): void {
    this.#answer?.onData(view);
  }

  onReadEnd(): void {}

  onEnd(): void {
    this.#answer?.finish('whole');
    this.#finish(this.#answer?.outcome === 'ok' ? 'ok' : 'error');
  }

  onFault(fault: UpstreamFault, _cause: unknown, hasBytes: boolean): void {
    if (this.isOver) return;
    // As with a client's request: it had closed the kept connection, and has not had the copy.
    if (fault === 'closed' && this.#isReused && !hasBytes) {
      this.#isReused = false;
      this.#answer = null;
      this.#sendOnFresh();
      return;
    }
    this.#answer?.finish('broken');
    this.#finish('error');
  }

  /** Its span, once it is over. */
  toSpan(): ShadowSpan {
    const { sent, lease, traceId, isAgain } = this.#start;
    const fields = this.#answer?.fields ?? {};
    return {
      traceId,
      spanId: this.#spanId,
      primaryTraceparent: sent.traceparent,
      requestId: this.#requestId,
      startEpochMs: this.#startEpochMs,
      durationMs: performance.now() - this.#beganMs,
      shadow: lease.replica.name,
      primary: sent.replica.name,
      model: sent.model,
      endpoint: sent.reading.endpoint.path,
      status: this.#answer?.status || null,
      outcome: this.#outcome ?? 'cut',
      firstTokenMs: fields.ttft_ms ?? null,
      promptTokens: fields.prompt_tokens ?? null,
      completionTokens: fields.completion_tokens ?? null,
      finish: fields.finish_reasons?.[0] ?? null,
      gpuSeconds: this.#gpuSeconds,
      isAgain,
    };
  }

  #sendOn(connection: UpstreamConnection): void {
    const { sent, lease, salt, timeouts, traceId } = this.#start;
    const { replica } = lease;
    this.#connection = connection;
    const trace = { traceparent: `00-${traceId}-${this.#spanId}-01`, tracestate: undefined };
    const headText = sent.toHeadText(replica, { requestId: this.#requestId, trace });
    const { firstByteMs, idleMs } = timeouts;
    const reading = { ...sent.reading, isTotalPerChoice: replica.engine === 'llamacpp' };
    this.#answer = new HeardAnswer(reading, performance.now(), replica.inflight, salt);
    connection.send({ method: 'POST', headText, body: sent.body, firstByteMs, idleMs }, this);
  }

  #finish(outcome: ShadowSpan['outcome']): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    const { lease, onOver } = this.#start;
    lease[Symbol.dispose]();
    this.#gpuSeconds = lease.gpuShare?.seconds ?? null;
    onOver(this);
  }
}
