import type { RequestBodySink } from '#wire/client';
import type { Framing } from '#wire/message';
import type { FailureCode } from '../failure.ts';

/** Where the body goes: a connection to a replica. */
export interface UploadTarget {
  onDrain: (() => void) | null;
  /** Returns false when the caller should wait for `onDrain`. */
  writeBody(before: string, piece: Buffer, after: string): boolean;
  endBody(last: string): void;
}

/** Receives the body of an upload. */
export interface UploadSink extends RequestBodySink {
  /** No more of the body can be sent, for this reason. */
  fail(code: FailureCode): void;
}

/** Where the body of an upload comes from: an `HttpExchange`, or what reads along. */
export interface UploadSource {
  readBody(sink: UploadSink, timeoutMs: number): void;
  stopReadingBody(): void;
  pauseReading(): void;
  resumeReading(): void;
}

/** Limits on a body and on the time in which it comes. */
export interface UploadSettings {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

const LAST_CHUNK = '0\r\n\r\n';

/**
 * A request body that goes to a replica as it comes from the client. It is in memory only as far as the replica's socket
 * has not taken it: while that is full, the client is paused. It can be sent only once.
 */
export class Upload implements UploadSink {
  readonly #source: UploadSource;
  readonly #settings: UploadSettings;
  /** The length of the body; `chunked`: unknown. */
  readonly announcedBytes: number | 'chunked';
  #target: UploadTarget | null = null;
  #onFailed: ((code: FailureCode) => void) | null = null;
  #sizeBytes = 0;
  #isBlocked = false;
  #state: 'waiting' | 'sending' | 'complete' | 'stopped' = 'waiting';

  constructor(source: UploadSource, framing: Framing, settings: UploadSettings) {
    this.#source = source;
    this.#settings = settings;
    this.announcedBytes = framing.kind === 'length' ? framing.bytes : 'chunked';
  }

  /** Whether the whole body has been passed on. */
  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  /**
   * Begins to send. `onFailed` is called at most once: `request_too_large`, `request_timeout`, `upstream_timeout` if
   * the replica took no more bytes, or what the source says.
   */
  start(target: UploadTarget, onFailed: (code: FailureCode) => void): void {
    this.#target = target;
    this.#onFailed = onFailed;
    this.#state = 'sending';
    this.#source.readBody(this, this.#settings.timeoutMs);
  }

  /** Sends no more. The rest of the body is not read. */
  stop(): void {
    if (this.#state !== 'sending') return;
    this.#state = 'stopped';
    this.#source.stopReadingBody();
  }

  onData(view: Buffer): void {
    if (this.#state !== 'sending' || this.#target === null) return;
    this.#sizeBytes += view.length;
    if (this.#sizeBytes > this.#settings.maxBytes) {
      this.fail('request_too_large');
      return;
    }
    const isChunked = this.announcedBytes === 'chunked';
    const size = isChunked ? `${view.length.toString(16)}\r\n` : '';
    if (this.#target.writeBody(size, view, isChunked ? '\r\n' : '')) return;
    this.#isBlocked = true;
    this.#source.pauseReading();
    this.#target.onDrain = () => {
      this.#isBlocked = false;
      this.#source.resumeReading();
    };
  }

  onEnd(): void {
    if (this.#state !== 'sending') return;
    this.#state = 'complete';
    this.#target?.endBody(this.announcedBytes === 'chunked' ? LAST_CHUNK : '');
    // Nothing more has to wait, and only a connection that is read shows that the client leaves.
    if (this.#isBlocked) this.#source.resumeReading();
  }

  onTimeout(): void {
    if (this.#state === 'sending') this.fail(this.#isBlocked ? 'upstream_timeout' : 'request_timeout');
  }

  fail(code: FailureCode): void {
    this.stop();
    this.#onFailed?.(code);
  }
}
