import { BodyReader, type BodySink } from './body-reader.ts';
import type { Framing } from './head.ts';

/** Receives the body of a request. */
export interface RequestBodySink extends BodySink {
  /** The body is complete. */
  onEnd(): void;
  /** The body did not arrive in time. Nothing more of it is read. */
  onTimeout(): void;
}

/**
 * What happens to the body of the present request:
 *
 *     unclaimed ─claim→ claimed ──┬─complete→ done
 *       │    └─discard→ discarded ┘
 *       └─stop→ stopped (also from claimed and discarded): nothing more of it is read
 */
export type RequestBodyState = 'unclaimed' | 'claimed' | 'discarded' | 'stopped' | 'done';

/** The body of the present request of a connection: given to a sink, thrown away, or left unread. */
export class RequestBody implements BodySink {
  readonly #reader = new BodyReader();
  #state: RequestBodyState = 'done';
  #sink: RequestBodySink | null = null;
  #discardedBytes = 0;

  get state(): RequestBodyState {
    return this.#state;
  }

  /** Bytes that were read and thrown away since the request began. */
  get discardedBytes(): number {
    return this.#discardedBytes;
  }

  /** Begins the body of the next request. */
  start(framing: Framing): void {
    this.#reader.start(framing);
    this.#sink = null;
    this.#discardedBytes = 0;
    this.#state = this.#reader.isDone ? 'done' : 'unclaimed';
  }

  /** Gives what comes to the sink. */
  claim(sink: RequestBodySink): void {
    this.#sink = sink;
    this.#state = 'claimed';
  }

  /** Throws away what comes. */
  discard(): void {
    this.#sink = null;
    this.#state = 'discarded';
  }

  /** Reads nothing more. Returns the sink, if there was one. */
  stop(): RequestBodySink | null {
    const sink = this.#sink;
    this.#sink = null;
    this.#state = 'stopped';
    return sink;
  }

  /** Reads nothing more for the sink; the state stays. */
  forgetSink(): void {
    this.#sink = null;
  }

  /** Counts bytes that were thrown away unread. */
  countDiscarded(sizeBytes: number): void {
    this.#discardedBytes += sizeBytes;
  }

  /** Takes bytes of the body, and returns the offset behind them. Throws HttpError('malformed'). */
  read(bytes: Buffer): number {
    return this.#reader.read(bytes, 0, this);
  }

  /** Whether the body is complete. */
  get isComplete(): boolean {
    return this.#reader.isDone;
  }

  /** Marks a complete body as done. Returns the sink that is to be told. */
  finish(): RequestBodySink | null {
    const sink = this.#state === 'claimed' ? this.#sink : null;
    this.#sink = null;
    this.#state = 'done';
    return sink;
  }

  onData(view: Buffer): void {
    if (this.#state === 'claimed') this.#sink?.onData(view);
    else this.#discardedBytes += view.length;
  }
}
