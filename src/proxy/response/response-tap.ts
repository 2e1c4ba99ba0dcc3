import type { RequestRecord } from '#otel/encode/request-record.ts';
import { JsonCursor } from '../../json/cursor.ts';
import { JsonSkimmer } from '../../json/skim.ts';
import { GapRecorder } from '../record/gaps.ts';
import type { FinishedChoice, StreamChunk } from './stream-chunk.ts';
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

/** Reads a JSON response of any size as it passes: usage and finish reasons, in bounded memory. */
export class JsonTap {
  readonly #skimmer = new JsonSkimmer(['usage', 'timings', 'metrics']);

  push(chunk: Buffer): void {
    this.#skimmer.push(chunk);
  }

  /** Writes what was learnt into a record. */
  fill(fields: ResponseFields): void {
    for (const [name, raw] of this.#skimmer.captured) {
      const json = cursor.reset(raw, 0, raw.length);
      if (name === 'usage') {
        fillUsage(fields, readObject(json, readUsage) ?? {});
        continue;
      }
      const timings = readObject(json, readTimings);
      if (timings !== null) fields.timings = timings;
    }
    const reasons = new FinishReasons();
    for (const choice of this.#skimmer.finished) reasons.add(choice);
    reasons.fill(fields);
  }
}

const cursor = new JsonCursor(Buffer.alloc(0));

function fillUsage(fields: ResponseFields, figures: UsageFigures): void {
  if (figures.promptTokens !== undefined) fields.prompt_tokens = figures.promptTokens;
  if (figures.completionTokens !== undefined) fields.completion_tokens = figures.completionTokens;
  if (figures.cachedTokens !== undefined) fields.cached_tokens = figures.cachedTokens;
  if (figures.reasoningTokens !== undefined) fields.reasoning_tokens = figures.reasoningTokens;
}

/** What stands at the cursor, if it is an object, and is one to its end. */
function readObject<T>(json: JsonCursor, read: (json: JsonCursor) => T): T | null {
  try {
    return json.peek() === 'object' ? read(json) : null;
  } catch {
    return null;
  }
}
