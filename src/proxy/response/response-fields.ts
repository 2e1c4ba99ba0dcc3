import { toShownName } from '#otel/base';
import type { RequestRecord } from '#otel/record/registry';
import type { FinishedChoice, ResponseIdentity } from './events/stream-chunk.ts';
import { type UsageFigures, withPromptTokens } from './usage-tally.ts';

/** The members of a record that come from the response. */
export type ResponseFields = Pick<
  RequestRecord,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'cached_tokens'
  | 'reasoning_tokens'
  | 'prompt_audio_tokens'
  | 'prompt_image_tokens'
  | 'completion_audio_tokens'
  | 'usage_source'
  | 'tokens_per_second'
  | 'ttft_ms'
  | 'gap_p50_ms'
  | 'gap_p95_ms'
  | 'silence_ms'
  | 'silence_after_ms'
  | 'finish_reasons'
  | 'timings'
  | 'response_id'
  | 'response_model'
  | 'cache_creation_tokens'
  | 'audio_seconds'
> &
  // Until when a silence lasts.
  Partial<Readonly<Pick<RequestRecord, 'e2e_ms'>>>;

const FINISH_REASON = /^[a-z_]{1,32}$/i;
const MAX_CHOICES = 128;

/** Finish reasons by choice index. A reason that is not a plain word is ignored: it could be text. */
export class FinishReasons {
  readonly #reasons: (string | undefined)[] = [];

  add({ index, reason }: FinishedChoice): void {
    if (!Number.isInteger(index) || index < 0 || index >= MAX_CHOICES || !FINISH_REASON.test(reason)) return;
    while (this.#reasons.length < index) this.#reasons.push(undefined);
    this.#reasons[index] = reason;
  }

  /** Whether each of the first choices has one. */
  hasAllOf(count: number): boolean {
    const known = this.#reasons.filter((reason, index) => reason !== undefined && index < count);
    return known.length === Math.min(count, MAX_CHOICES);
  }

  get isEmpty(): boolean {
    return this.#reasons.length === 0;
  }

  fill(fields: ResponseFields): void {
    if (!this.isEmpty) fields.finish_reasons = this.#reasons.map((reason) => reason ?? 'unknown');
  }
}

/** An id with other characters is ignored: it could be text. */
const RESPONSE_ID = /^[!-~]{1,256}$/;

/** Null if it could be no id. */
export function toResponseId(id: string | null): string | null {
  return id !== null && RESPONSE_ID.test(id) ? id : null;
}

/** Writes what the engine calls the response and the model. */
export function fillIdentity(fields: ResponseFields, identity: ResponseIdentity): void {
  const { model } = identity;
  const id = toResponseId(identity.id);
  if (id !== null) fields.response_id = id;
  if (model) fields.response_model = toShownName(model);
}

/** Writes what the engine has reported of tokens. */
export function fillUsage(fields: ResponseFields, told: UsageFigures): void {
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
