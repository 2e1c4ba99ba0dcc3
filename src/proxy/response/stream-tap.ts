import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import type { ResponseIdentity, StreamChunk } from './events/stream-chunk.ts';
import {
  FinishReasons,
  fillIdentity,
  fillUsage,
  type ResponseFields,
  toResponseId,
} from './response-fields.ts';
import type { UsageFigures, UsageTally } from './usage-tally.ts';

/** Shorter silences are in the percentiles of the gaps. */
const LEAST_SILENCE_MS = 1_000;

/** Reads an event stream as it passes: usage, first output, gaps, finish reasons, errors. No text. */
export class StreamTap {
  readonly #requestArrivedMs: number;
  readonly #usage: UsageTally;
  readonly #gaps = new GapRecorder();
  readonly #finishReasons = new FinishReasons();
  /** One, or as many as have sent something. */
  #choiceCount = 1;
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
   * Whether the stream declared itself complete: by the end mark or, if that is enough, a finish reason of each choice. Also
   * if its last event was too large to be read: that of a response repeats the whole output.
   */
  get isWhole(): boolean {
    if (this.#isDone || this.#isLastUnread) return true;
    return !this.#needsEndMark && this.#finishReasons.hasAllOf(this.#choiceCount);
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
    const usage = chunk.usage ?? toRunningFigures(chunk);
    if (usage !== null) {
      const isEnd = chunk.hasEmptyChoices || chunk.finished.length > 0;
      const isEmptyEnd = isEnd && this.outputCount === 0 && !chunk.hasOutput;
      this.#usage.add(usage, chunk.hasEmptyChoices ? null : chunk.choiceIndex, isEmptyEnd);
    }
    if (chunk.timings !== null) this.#timings = chunk.timings;
    if (chunk.identity !== null) this.#noteIdentity(chunk.identity);
    this.#choiceCount = Math.max(this.#choiceCount, 1 + (chunk.choiceIndex ?? 0));
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
    fields.usage_source = this.#usage.sourceOf(this.isWhole);
    if (this.#firstOutputMs !== null) fields.ttft_ms = this.#firstOutputMs - this.#requestArrivedMs;
    const rate = tokensPerSecond(usage.completionTokens, this.#lastOutputMs - (this.#firstOutputMs ?? 0));
    if (rate !== null) fields.tokens_per_second = rate;
    const gaps = this.#gaps.percentiles();
    if (gaps !== null) {
      fields.gap_p50_ms = gaps.p50;
      fields.gap_p95_ms = gaps.p95;
    }
    this.#fillSilence(fields);
    this.#finishReasons.fill(fields);
    if (this.#timings !== null) fields.timings = this.#timings;
    fillIdentity(fields, this.#identity);
  }

  /** The longest silence: between two events with output, or from the last one to the end. */
  #fillSilence(fields: ResponseFields): void {
    if (this.#firstOutputMs === null) return;
    const firstAfterMs = this.#firstOutputMs - this.#requestArrivedMs;
    const lastAfterMs = this.#lastOutputMs - this.#requestArrivedMs;
    const gap = this.#gaps.longest() ?? { ms: 0, afterMs: 0 };
    const endMs = (fields.e2e_ms ?? lastAfterMs) - lastAfterMs;
    if (Math.max(gap.ms, endMs) < LEAST_SILENCE_MS) return;
    fields.silence_ms = Math.max(gap.ms, endMs);
    fields.silence_after_ms = endMs > gap.ms ? lastAfterMs : firstAfterMs + gap.afterMs;
  }

  #noteIdentity({ id, model }: ResponseIdentity): void {
    this.#identity = { id: this.#identity.id ?? id, model: this.#identity.model ?? model };
  }
}

/**
 * The tokens of a choice so far, in llama.cpp's `timings`, which are also on its last chunk: cached and processed tokens of
 * the prompt, and predicted ones. Releases before `cache_n` do not tell all of the prompt. Null: it tells none.
 */
function toRunningFigures({ timings, choiceIndex }: StreamChunk): UsageFigures | null {
  const { cache_n: cachedTokens, prompt_n: processed, predicted_n: completionTokens } = timings ?? {};
  if (choiceIndex === null || !isCount(completionTokens)) return null;
  if (!isCount(cachedTokens) || !isCount(processed)) return { completionTokens };
  return { promptTokens: cachedTokens + processed, cachedTokens, completionTokens };
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isSafeInteger(value) && value >= 0;
}

/**
 * The completion tokens after the first one, by the time after the first event with output until the last one. Null if
 * there is no such token, or all came at the same time.
 */
function tokensPerSecond(completionTokens: number | undefined, durationMs: number): number | null {
  if (completionTokens === undefined || completionTokens < 2 || !(durationMs > 0)) return null;
  return ((completionTokens - 1) / durationMs) * 1000;
}

/**
 * The percentile of ascending values by linear interpolation at rank p·(n−1), NumPy's default.
 *
 * @param sorted at least one value, ascending
 * @param p from 0 to 1
 */
export function percentile(sorted: Float64Array, p: number): number {
  const rank = p * (sorted.length - 1);
  const below = Math.floor(rank);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? Number.NaN;
  return low + (high - low) * (rank - below);
}

/** 2 MiB per stream. No model's context holds so many tokens. Further gaps are not counted. */
const MAX_GAPS = 262_144;

/** All gaps between the chunks of one stream, so that percentiles are exact. */
export class GapRecorder {
  readonly #gapsMs: number[] = [];
  #lastArrivalMs: number | undefined;

  /** A chunk arrived; `arrivalMs` never decreases. */
  add(arrivalMs: number): void {
    if (this.#lastArrivalMs !== undefined && this.#gapsMs.length < MAX_GAPS) {
      this.#gapsMs.push(arrivalMs - this.#lastArrivalMs);
    }
    this.#lastArrivalMs = arrivalMs;
  }

  /** How many chunks have arrived, at most one more than MAX_GAPS. */
  get chunkCount(): number {
    return this.#lastArrivalMs === undefined ? 0 : this.#gapsMs.length + 1;
  }

  /** The median gap and the 95th percentile, in milliseconds; null with fewer than two chunks. */
  percentiles(): { readonly p50: number; readonly p95: number } | null {
    if (this.#gapsMs.length === 0) return null;
    const sorted = new Float64Array(this.#gapsMs).sort();
    return { p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95) };
  }

  /** The longest gap, and how long after the first chunk it began; null with fewer than two chunks. */
  longest(): { readonly ms: number; readonly afterMs: number } | null {
    let [longestMs, longestAfterMs, atMs] = [-1, 0, 0];
    for (const gapMs of this.#gapsMs) {
      if (gapMs > longestMs) {
        longestMs = gapMs;
        longestAfterMs = atMs;
      }
      atMs += gapMs;
    }
    return longestMs < 0 ? null : { ms: longestMs, afterMs: longestAfterMs };
  }
}
