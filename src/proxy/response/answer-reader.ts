import type { ResponseHead } from '#wire/message';
import { toRelayedHead } from '../attempt/headers.ts';
import { readEventData, type SseSink, SseSplitter } from './events/sse.ts';
import { JsonTap } from './json-tap.ts';
import type { ResponseFields } from './response-fields.ts';
import type { ResponseReading } from './response-reading.ts';
import { StreamTap } from './stream-tap.ts';
import { UsageTally } from './usage-tally.ts';

/** How an answer is read that is not relayed. */
export type AnswerReading = Omit<ResponseReading, 'undo' | 'onResponseId'>;

/** Receives the output in an answer, in its order. Nothing that it gets is good after the call. */
interface OutputSink {
  /** The bytes between the quotes of a JSON string, which may have escapes. */
  onText(json: Buffer, start: number, end: number): void;
  /** The JSON of an event whose output is more than one string, such as a tool call. */
  onParts(json: Buffer, start: number, end: number): void;
}

/** Reads an answer for its facts: times, tokens, finish reasons, errors, and the output, as far as somebody wants it. */
export class AnswerReader implements SseSink {
  readonly #reading: AnswerReading;
  readonly #sentMs: number;
  readonly #output: OutputSink;
  #status = 0;
  #events: { readonly splitter: SseSplitter; readonly tap: StreamTap } | null = null;
  #json: JsonTap | null = null;
  #arrivedMs = 0;

  /** `sentMs`: when the request was written, on the clock of the answer. */
  constructor(reading: AnswerReading, sentMs: number, output: OutputSink) {
    this.#reading = reading;
    this.#sentMs = sentMs;
    this.#output = output;
  }

  /** 0 before the head. */
  get status(): number {
    return this.#status;
  }

  get isEventStream(): boolean {
    return this.#events !== null;
  }

  /** Whether a whole answer in JSON is read. */
  get isJson(): boolean {
    return this.#json !== null;
  }

  /** Whether the engine reported an error inside the stream. */
  get hasError(): boolean {
    return this.#events?.tap.hasError === true;
  }

  /** Whether a stream declared itself complete; of other answers, whether all has come is for others to say. */
  get isWhole(): boolean {
    return this.#events?.tap.isWhole ?? true;
  }

  begin(responseHead: ResponseHead): void {
    const head = toRelayedHead(responseHead);
    this.#status = head.status;
    if (head.isEncoded) return;
    const reading = { ...this.#reading, undo: null, onResponseId: null };
    if (head.isEventStream) {
      const tap = new StreamTap(this.#sentMs, reading.endpoint, new UsageTally(reading));
      this.#events = { splitter: new SseSplitter(reading.maxEventBytes), tap };
    } else if (head.isJson && head.status < 400) this.#json = new JsonTap(reading);
  }

  push(view: Buffer, atMs: number): void {
    this.#arrivedMs = atMs;
    this.#events?.splitter.push(view, this);
    this.#json?.push(view);
  }

  /** Nothing follows. */
  end(): void {
    this.#events?.splitter.end(this);
  }

  /** Writes the facts. */
  fill(fields: ResponseFields): void {
    (this.#events?.tap ?? this.#json)?.fill(fields);
  }

  onEvent(bytes: Buffer, start: number, end: number): void {
    const tap = this.#events?.tap;
    if (tap === undefined) return;
    const { endpoint, scratch } = this.#reading;
    const { data } = scratch;
    const hasData = readEventData(bytes, start, end, data);
    const chunk = hasData ? endpoint.readEvent(data, scratch.cursor, tap.wantsIdentity) : null;
    tap.observe(chunk, data.hasErrorLine, this.#arrivedMs);
    if (chunk === null || !chunk.hasOutput) return;
    if (chunk.text !== null) this.#output.onText(data.bytes, chunk.text.start, chunk.text.end);
    else this.#output.onParts(data.bytes, data.start, data.end);
  }

  onOverlong(): void {
    this.#events?.tap.noteUnread();
  }

  takeKnown(_bytes: Buffer, start: number): number {
    return start;
  }
}
