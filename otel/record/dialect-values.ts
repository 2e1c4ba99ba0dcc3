import { OPERATIONS, type RequestRecord } from '#otel/record/registry';
import type { DialectValues } from './record-attributes.ts';
import type { RequestNotes, RequestParameters } from './request-notes.ts';

/** What dialects say of a request, and is no field of its record. Called only where one is on. */
export function toDialectValues(
  record: Readonly<RequestRecord>,
  { parameters, names }: RequestNotes = {},
): DialectValues {
  const { endpoint, ts, ttft_ms, prompt_tokens, completion_tokens, finish_reasons } = record;
  const hasBoth = prompt_tokens !== undefined && completion_tokens !== undefined;
  return {
    langfuseObservationCompletionStartTime:
      ttft_ms === undefined ? undefined : new Date(Date.parse(ts) + ttft_ms).toISOString(),
    langfuseObservationUsageDetails: toUsageDetails(record),
    langfuseObservationPromptName: names?.prompt,
    langfuseObservationPromptVersion: names?.promptVersion,
    openinferenceSpanKind: toSpanKind(endpoint),
    llmInvocationParameters: toInvocationParameters(parameters, record.max_tokens),
    llmTokenCountTotal: hasBoth ? prompt_tokens + completion_tokens : undefined,
    llmFinishReason: finish_reasons?.[0],
    spanType: toSpanKind(endpoint) === undefined ? undefined : 'llm',
  };
}

/**
 * The tokens by kind, none of them twice: Langfuse adds the kinds up where there is no total. Its kinds are those of its
 * own mapping of the conventions.
 */
function toUsageDetails(record: Readonly<RequestRecord>): string | undefined {
  const { prompt_tokens, completion_tokens } = record;
  if (prompt_tokens === undefined && completion_tokens === undefined) return undefined;
  const ofInput = {
    input_cached_tokens: record.cached_tokens,
    input_cache_creation: record.cache_creation_tokens,
  };
  const ofOutput = {
    output_reasoning_tokens: record.reasoning_tokens,
    output_audio_tokens: record.completion_audio_tokens,
  };
  return JSON.stringify({
    input: withoutParts(prompt_tokens, ofInput),
    ...ofInput,
    output: withoutParts(completion_tokens, ofOutput),
    ...ofOutput,
  });
}

function withoutParts(
  total: number | undefined,
  parts: Readonly<Record<string, number | undefined>>,
): number | undefined {
  if (total === undefined) return undefined;
  let rest = total;
  for (const part of Object.values(parts)) rest -= part ?? 0;
  return Math.max(0, rest);
}

function toSpanKind(endpoint: string): 'LLM' | 'EMBEDDING' | 'RERANKER' | undefined {
  if (endpoint.endsWith('/rerank')) return 'RERANKER';
  const operation = OPERATIONS.get(endpoint);
  if (operation === 'embeddings') return 'EMBEDDING';
  return operation === 'chat' || operation === 'text_completion' ? 'LLM' : undefined;
}

/** As the API's own members. */
function toInvocationParameters(
  parameters: RequestParameters | undefined,
  maxTokens: number | undefined,
): string | undefined {
  const members = {
    temperature: parameters?.temperature,
    top_p: parameters?.topP,
    top_k: parameters?.topK,
    frequency_penalty: parameters?.frequencyPenalty,
    presence_penalty: parameters?.presencePenalty,
    seed: parameters?.seed,
    n: parameters?.choiceCount,
    max_tokens: maxTokens,
  };
  const text = JSON.stringify(members);
  return text === '{}' ? undefined : text;
}
