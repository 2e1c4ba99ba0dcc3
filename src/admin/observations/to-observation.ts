import { toOutcome } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import type { Observation } from '#verdict';

/** Characters of a prompt for which one token is counted where the engine counts none. */
const CHARS_PER_TOKEN = 4;

/**
 * What a comparison uses of a record; null if no replica was chosen for the request, or if the response went on in the
 * background: its tokens are not those of its time.
 */
export function toObservation(record: Readonly<RequestRecord>): Observation | null {
  const { replica, prompt_tokens, prompt_chars } = record;
  if (replica === undefined || record.background_ms !== undefined) return null;
  const estimated = prompt_chars === undefined ? null : Math.round(prompt_chars / CHARS_PER_TOKEN);
  return {
    replica,
    model: record.model ?? null,
    endpoint: record.endpoint,
    stream: record.stream,
    promptTokens: prompt_tokens ?? estimated,
    cachedTokens: record.cached_tokens ?? null,
    completionTokens: record.completion_tokens ?? null,
    maxTokens: record.max_tokens ?? null,
    ttftMs: record.ttft_ms ?? null,
    gapMs: record.gap_p50_ms ?? null,
    e2eMs: record.e2e_ms,
    outcome: judgeOutcome(record),
    finish: record.finish_reasons?.[0] ?? null,
  };
}

/**
 * A 4xx status of a replica counts as an error: a replica that refuses what its peers take is wrong, and what all of
 * them refuse is no difference.
 */
function judgeOutcome(record: Readonly<RequestRecord>): Observation['outcome'] {
  switch (toOutcome(record)) {
    case 'success':
      return 'ok';
    case 'error':
    case 'client_error':
      return 'error';
    default:
      return 'unclear';
  }
}
