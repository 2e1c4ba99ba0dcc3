import { BodyReader, type BodySink, type Framing } from '#wire/message';

/** Receives the body of a request. */
export interface RequestBodySink extends BodySink {
  /** The body is complete. */
  onEnd(): void;
  /** The body did not arrive in time. No more of it is read. */
  onTimeout(): void;
}

/**
 * The states of the body of the current request:
 *
 *     unclaimed ─claim→ claimed ──┬─complete→ done
 *       │    └─discard→ discarded ┘
 *       └─stop→ stopped (also from claimed and discarded): no more of it is read
 */
export type RequestBodyState = 'unclaimed' | 'claimed' | 'discarded' | 'stopped' | 'done';

/** The body of a connection's current request: passed to a sink, discarded, or left unread. */
export class RequestBody implements BodySink {
  readonly #reader = new BodyReader();
  #state: RequestBodyState = 'done';
  #sink: RequestBodySink | null = null;
  #discardedBytes = 0;

  get state(): RequestBodyState {
    return this.#state;
  }

  /** How many bytes have been discarded since the request began. */
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

  /** Passes the body to the sink. */
  claim(sink: RequestBodySink): void {
    this.#sink = sink;
    this.#state = 'claimed';
  }

  /** Discards the body as it is read. */
  discard(): void {
    this.#sink = null;
    this.#state = 'discarded';
  }

  /** Stops reading. Returns the sink, if there was one. */
  stop(): RequestBodySink | null {
    const sink = this.#sink;
    this.#sink = null;
    this.#state = 'stopped';
    return sink;
  }

  /** Counts bytes that were discarded without being parsed. */
  countDiscarded(sizeBytes: number): void {
    this.#discardedBytes += sizeBytes;
  }

  /** Reads the body's part of `bytes`, and returns the offset after it. Throws HttpError('malformed'). */
  read(bytes: Buffer): number {
    return this.#reader.read(bytes, 0, this);
  }

  /** Whether the body is complete. */
  get isComplete(): boolean {
    return this.#reader.isDone;
  }

  /** Marks a complete body as done. Returns the sink to notify. */
  finish(): RequestBodySink | null {
    const sink = this.#sink;
    this.#sink = null;
    this.#state = 'done';
    return sink;
  }

  onData(view: Buffer): void {
    if (this.#state === 'claimed') this.#sink?.onData(view);
    else this.#discardedBytes += view.length;
  }
}
