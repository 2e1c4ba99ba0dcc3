import type { RequestRecord } from '#otel/encode/request-record.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import { MemberScanner } from '../../json/member-scanner.ts';
import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import { GapRecorder } from '../record/gaps.ts';
import type { EventScratch } from './events/event-scratch.ts';
import type { FinishedChoice, ResponseIdentity, StreamChunk } from './events/stream-chunk.ts';
import type { UndoRules } from './undo-usage.ts';
import {
  type UsageFigures,
  type UsageTally,
  type UsageTallySettings,
  withPromptTokens,
} from './usage-tally.ts';

/** How the response to one attempt is read for the record. */
export interface ResponseReading extends UsageTallySettings {
  readonly endpoint: RecordedEndpoint;
  readonly scratch: EventScratch;
  /** What the client called the model; null: what the engine calls it goes to the client. */
  readonly modelName: string | null;
  /** Larger events are relayed unread. */
  readonly maxEventBytes: number;
  /** What has to be undone in a stream; null if the client's own request went upstream. */
  readonly undo: UndoRules | null;
  /** Told the id of the response, once; null: nobody wants it. */
  readonly onResponseId: ((id: string) => void) | null;
}

/** The members of a record that come from the response. */
type ResponseFields = Pick<
  RequestRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'cached_tokens'
  | 'reasoning_tokens'
  | 'prompt_audio_tokens'
  | 'prompt_image_tokens'
  | 'completion_audio_tokens'
  | 'tokens_per_second'
  | 'ttft_ms'
  | 'gap_p50_ms'
  | 'gap_p95_ms'
  | 'finish_reasons'
  | 'timings'
  | 'response_id'
  | 'response_model'
  | 'cache_creation_tokens'
  | 'audio_seconds'
>;

const FINISH_REASON = /^[a-z_]{1,32}$/i;
const MAX_CHOICES = 128;

/** Finish reasons by choice index. A reason that is not a plain word is ignored: it could be text. */
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
  #lastOutputMs = 0;
  #timings: Readonly<Record<string, number>> | null = null;
  #identity: ResponseIdentity = { id: null, model: null };
  #isDone = false;
  #hasError = false;
  #isLastUnread = false;
  readonly #needsEndMark: boolean;

  /** @param requestArrivedMs when the request arrived, on the clock of the events' arrival times */
  constructor(
    requestArrivedMs: number,
    { needsEndMark }: Pick<RecordedEndpoint, 'needsEndMark'>,
    usage: UsageTally,
  ) {
    this.#requestArrivedMs = requestArrivedMs;
    this.#needsEndMark = needsEndMark;
    this.#usage = usage;
  }

  /** Whether no event so far has named both the response and its model. */
  get wantsIdentity(): boolean {
    return this.#identity.id === null || this.#identity.model === null;
  }

  /** Whether the end mark came. A break after it is no error. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the replica reported an error inside the stream. */
  get hasError(): boolean {
    return this.#hasError;
  }

  /**
   * Whether the stream declared itself complete: by the end mark or, if that is enough, a finish reason. Also if its last
   * event was too large to be read: that of a response repeats the whole output.
   */
  get isWhole(): boolean {
    return this.#isDone || this.#isLastUnread || (!this.#needsEndMark && !this.#finishReasons.isEmpty);
  }

  /** What the engine calls the response; null if it has not said, or nothing that could be an id. */
  get responseId(): string | null {
    return toResponseId(this.#identity.id);
  }

  /** What the engine has reported so far. */
  get usage(): UsageFigures {
    return this.#usage.total();
  }

  /** How many events with output have come. */
  get outputCount(): number {
    return this.#gaps.chunkCount;
  }

  /** Takes one event; `chunk` is null if the event has no data. */
  observe(chunk: StreamChunk | null, hasErrorLine: boolean, arrivedMs: number): void {
    this.#isLastUnread = false;
    if (hasErrorLine) this.#hasError = true;
    if (chunk === null) return;
    if (chunk.kind === 'done') this.#isDone = true;
    if (chunk.hasError) this.#hasError = true;
    if (chunk.usage !== null) this.#usage.add(chunk.usage, chunk.hasEmptyChoices ? null : chunk.choiceIndex);
    if (chunk.timings !== null) this.#timings = chunk.timings;
    if (chunk.identity !== null) this.#noteIdentity(chunk.identity);
    for (const finished of chunk.finished) this.#finishReasons.add(finished);
    if (chunk.hasOutput) this.observeOutput(arrivedMs);
  }

  /** An event was too large to be read. */
  noteUnread(): void {
    this.#isLastUnread = true;
  }

  /** Takes one event that carries output and says nothing else. */
  observeOutput(arrivedMs: number): void {
    this.#isLastUnread = false;
    this.#firstOutputMs ??= arrivedMs;
    this.#lastOutputMs = arrivedMs;
    this.#gaps.add(arrivedMs);
  }

  /** Writes the facts into a record. */
  fill(fields: ResponseFields): void {
    const usage = this.#usage.total();
    fillUsage(fields, usage);
    if (this.#firstOutputMs !== null) fields.ttft_ms = this.#firstOutputMs - this.#requestArrivedMs;
    const rate = tokensPerSecond(usage.completionTokens, this.#lastOutputMs - (this.#firstOutputMs ?? 0));
    if (rate !== null) fields.tokens_per_second = rate;
    const gaps = this.#gaps.percentiles();
    if (gaps !== null) {
      fields.gap_p50_ms = gaps.p50;
      fields.gap_p95_ms = gaps.p95;
    }
    this.#finishReasons.fill(fields);
    if (this.#timings !== null) fields.timings = this.#timings;
    fillIdentity(fields, this.#identity);
  }

  #noteIdentity({ id, model }: ResponseIdentity): void {
    this.#identity = { id: this.#identity.id ?? id, model: this.#identity.model ?? model };
  }
}

/** Reads a JSON response of any size as it passes: usage, timings and finish reasons, in bounded memory. */
export class JsonTap {
  readonly #reading: Pick<ResponseReading, 'endpoint' | 'scratch'>;
  readonly #scanner: MemberScanner;

  constructor(reading: Pick<ResponseReading, 'endpoint' | 'scratch'>) {
    this.#reading = reading;
    this.#scanner = new MemberScanner(reading.endpoint.wantedOfAnswer);
  }

  /** What the engine has reported; nothing before the end of the response. */
  get usage(): UsageFigures {
    const { endpoint, scratch } = this.#reading;
    return endpoint.readAnswer(this.#scanner, scratch.cursor).usage ?? {};
  }

  /** What the engine calls the response. Nothing before the end of the response, or if it could be no id. */
  get responseId(): string | null {
    const { endpoint, scratch } = this.#reading;
    return toResponseId(endpoint.readAnswer(this.#scanner, scratch.cursor).identity?.id ?? null);
  }

  /** Takes the next part of the response. Keeps no reference to it. */
  push(chunk: Buffer): void {
    this.#scanner.push(chunk);
  }

  /** Writes the facts into a record. */
  fill(fields: ResponseFields): void {
    const { endpoint, scratch } = this.#reading;
    const { identity, usage, timings, finished } = endpoint.readAnswer(this.#scanner, scratch.cursor);
    if (usage !== null) fillUsage(fields, usage);
    if (timings !== null) fields.timings = timings;
    if (identity !== null) fillIdentity(fields, identity);
    const reasons = new FinishReasons();
    for (const choice of finished) reasons.add(choice);
    reasons.fill(fields);
  }
}

/**
 * The completion tokens after the first one, by the time after the first event with output until the last one. Null if
 * there is no such token, or all came at the same time.
 */
function tokensPerSecond(completionTokens: number | undefined, durationMs: number): number | null {
  if (completionTokens === undefined || completionTokens < 2 || !(durationMs > 0)) return null;
  return ((completionTokens - 1) / durationMs) * 1000;
}

/** An id with other characters is ignored: it could be text. */
const RESPONSE_ID = /^[!-~]{1,256}$/;

function toResponseId(id: string | null): string | null {
  return id !== null && RESPONSE_ID.test(id) ? id : null;
}

function fillIdentity(fields: ResponseFields, identity: ResponseIdentity): void {
  const { model } = identity;
  const id = toResponseId(identity.id);
  if (id !== null) fields.response_id = id;
  if (model) fields.response_model = toShownName(model);
}

function fillUsage(fields: ResponseFields, told: UsageFigures): void {
  const figures = withPromptTokens(told);
  if (figures.promptTokens !== undefined) fields.prompt_tokens = figures.promptTokens;
  if (figures.completionTokens !== undefined) fields.completion_tokens = figures.completionTokens;
  if (figures.cachedTokens !== undefined) fields.cached_tokens = figures.cachedTokens;
  if (figures.reasoningTokens !== undefined) fields.reasoning_tokens = figures.reasoningTokens;
  if (figures.audioSeconds !== undefined) fields.audio_seconds = figures.audioSeconds;
  if (figures.promptAudioTokens !== undefined) fields.prompt_audio_tokens = figures.promptAudioTokens;
  if (figures.promptImageTokens !== undefined) fields.prompt_image_tokens = figures.promptImageTokens;
  if (figures.completionAudioTokens !== undefined)
    fields.completion_audio_tokens = figures.completionAudioTokens;
  if (figures.cacheCreationTokens !== undefined) fields.cache_creation_tokens = figures.cacheCreationTokens;
}
