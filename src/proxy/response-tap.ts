import type { RequestRecord } from '#otel/request-record.ts';
import { JsonCursor } from '../json/cursor.ts';
import { JsonSkimmer } from '../json/skim.ts';
import { GapRecorder } from '../record/gaps.ts';
import { type FinishedChoice, readStreamChunk, type StreamChunk } from './stream-chunk.ts';
import { readTimings } from './timings.ts';
import { readUsage, type UsageFigures, type UsageTally } from './usage.ts';

/** The members of a record that a response tells. */
type ResponseFields = Pick<
  RequestRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'cached_tokens'
  | 'reasoning_tokens'
  | 'ttft_ms'
  | 'gap_p50_ms'
  | 'gap_p95_ms'
  | 'finish_reasons'
  | 'timings'
>;

const FINISH_REASON = /^[a-z_]{1,32}$/i;
const MAX_CHOICES = 128;

/** Finish reasons by choice index. A reason that is no plain word is not taken over: it could be text. */
class FinishReasons {
  readonly #reasons: string[] = [];

  add({ index, reason }: FinishedChoice): void {
    if (!Number.isInteger(index) || index < 0 || index >= MAX_CHOICES || !FINISH_REASON.test(reason)) return;
    while (this.#reasons.length < index) this.#reasons.push('unknown');
    this.#reasons[index] = reason;
  }

  get isEmpty(): boolean {
    return this.#reasons.length === 0;
  }

  fill(fields: ResponseFields): void {
    if (!this.isEmpty) fields.finish_reasons = this.#reasons;
  }
}

/** Reads an event stream as it passes: usage, first output, gaps, finish reasons, errors. No text. */
export class StreamTap {
  readonly #requestArrivedMs: number;
  readonly #usage: UsageTally;
  readonly #gaps = new GapRecorder();
  readonly #finishReasons = new FinishReasons();
  #firstOutputMs: number | null = null;
  #timings: Readonly<Record<string, number>> | null = null;
  #isDone = false;
  #hasError = false;

  /** @param requestArrivedMs when the request arrived, on the clock of the events' arrival times */
  constructor(requestArrivedMs: number, usage: UsageTally) {
    this.#requestArrivedMs = requestArrivedMs;
    this.#usage = usage;
  }

  /** Whether `[DONE]` came: nothing that breaks afterwards is an error. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the replica told of an error inside the stream. */
  get hasError(): boolean {
    return this.#hasError;
  }

  /** Whether the stream said of itself that it was whole: `[DONE]`, or a finish reason. */
  get isWhole(): boolean {
    return this.#isDone || !this.#finishReasons.isEmpty;
  }

  /** Notes one event; `chunk` is null when the event has no data. */
  observe(chunk: StreamChunk | null, hasErrorLine: boolean, arrivedMs: number): void {
    if (hasErrorLine) this.#hasError = true;
    if (chunk === null) return;
    if (chunk.kind === 'done') this.#isDone = true;
    if (chunk.hasError) this.#hasError = true;
    if (chunk.usage !== null) this.#usage.add(chunk.usage, chunk.hasEmptyChoices ? null : chunk.choiceIndex);
    if (chunk.timings !== null) this.#timings = chunk.timings;
    for (const finished of chunk.finished) this.#finishReasons.add(finished);
    if (chunk.hasOutput) this.observeOutput(arrivedMs);
  }

  /** Notes one event that carries output and tells nothing else. */
  observeOutput(arrivedMs: number): void {
    this.#firstOutputMs ??= arrivedMs;
    this.#gaps.add(arrivedMs);
  }

  /** Writes what was learnt into a record. */
  fill(fields: ResponseFields): void {
    fillUsage(fields, this.#usage.total());
    if (this.#firstOutputMs !== null) fields.ttft_ms = this.#firstOutputMs - this.#requestArrivedMs;
    const gaps = this.#gaps.percentiles();
    if (gaps !== null) {
      fields.gap_p50_ms = gaps.p50;
      fields.gap_p95_ms = gaps.p95;
    }
    this.#finishReasons.fill(fields);
    if (this.#timings !== null) fields.timings = this.#timings;
  }
}

/** A response of one read up to this size is kept until its end, and read at once. */
const WHOLE_BYTES = 64 * 1024;

/** What a JSON response tells: members that a stream's chunk has as well. */
type AnswerFacts = Pick<StreamChunk, 'usage' | 'timings' | 'finished'>;

/** Reads a JSON response of any size as it passes: usage and finish reasons, in bounded memory. */
export class JsonTap {
  /** The first read, as long as it is the only one. */
  #whole: Buffer | null = null;
  #skimmer: JsonSkimmer | null = null;

  push(chunk: Buffer): void {
    if (this.#skimmer === null && this.#whole === null && chunk.length <= WHOLE_BYTES) this.#whole = chunk;
    else this.#skim().push(chunk);
  }

  /** Writes what was learnt into a record. */
  fill(fields: ResponseFields): void {
    const { usage, timings, finished } = this.#read();
    if (usage !== null) fillUsage(fields, usage);
    if (timings !== null) fields.timings = timings;
    const reasons = new FinishReasons();
    for (const choice of finished) reasons.add(choice);
    reasons.fill(fields);
  }

  /**
   * A whole response is read as one chunk of a stream is: skimming it bytewise takes several times as long (8.6 µs
   * for 600 bytes, not 3). What is not JSON is skimmed, leniently.
   */
  #read(): AnswerFacts {
    if (this.#whole !== null) {
      const chunk = readStreamChunk({ bytes: this.#whole, start: 0, end: this.#whole.length });
      if (chunk.kind === 'object') return chunk;
    }
    return readSkimmed(this.#skim());
  }

  /** The skimmer, which has seen what has come so far. */
  #skim(): JsonSkimmer {
    this.#skimmer ??= new JsonSkimmer({ topLevel: ['usage', 'timings', 'metrics'] });
    if (this.#whole !== null) this.#skimmer.push(this.#whole);
    this.#whole = null;
    return this.#skimmer;
  }
}

function readSkimmed({ captured, finishReasons }: JsonSkimmer): AnswerFacts {
  return {
    usage: readObject(captured.get('usage'), readUsage),
    timings: readObject(captured.get('timings') ?? captured.get('metrics'), readTimings),
    finished: finishReasons.map((reason, index) => ({ index, reason })),
  };
}

function fillUsage(fields: ResponseFields, figures: UsageFigures): void {
  if (figures.promptTokens !== undefined) fields.prompt_tokens = figures.promptTokens;
  if (figures.completionTokens !== undefined) fields.completion_tokens = figures.completionTokens;
  if (figures.cachedTokens !== undefined) fields.cached_tokens = figures.cachedTokens;
  if (figures.reasoningTokens !== undefined) fields.reasoning_tokens = figures.reasoningTokens;
}

function readObject<T>(bytes: Buffer | undefined, read: (cursor: JsonCursor) => T): T | null {
  if (bytes === undefined) return null;
  try {
    const cursor = new JsonCursor(bytes);
    return cursor.peek() === 'object' ? read(cursor) : null;
  } catch {
    return null;
  }
}
