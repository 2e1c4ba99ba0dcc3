import {
  type AttemptOutcome,
  toFailedAttemptOutcome,
  toLastAttemptOutcome,
  toMsBeforeLastAttempt,
} from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import type { Observation } from '#verdict/blocks';

/** Characters of a prompt for which one token is counted where the engine counts none. */
const CHARS_PER_TOKEN = 4;

/** What a comparison takes each outcome of an attempt for; null: the attempt is left out. */
export type OutcomeReading = Readonly<Record<AttemptOutcome, Observation['outcome'] | null>>;

/** What a comparison uses of a record: its attempts, each at its replica, as far as they show something of it. */
export function toObservations(
  record: Readonly<RequestRecord>,
  reading: OutcomeReading,
): readonly Observation[] {
  const last = toLastObservation(record, reading);
  const { failed_attempts = [] } = record;
  if (failed_attempts.length === 0) return last === null ? [] : [last];
  const failed = failed_attempts.flatMap((attempt): readonly Observation[] => {
    const outcome = reading[toFailedAttemptOutcome(attempt)];
    const { replica, duration_ms } = attempt;
    return outcome === null
      ? []
      : [{ ...toCommon(record), ...WITHOUT_ANSWER, replica, e2eMs: duration_ms, outcome }];
  });
  return last === null ? failed : [...failed, last];
}

/** Null if there is none, or if the response went on in the background: its tokens are not those of its time. */
function toLastObservation(record: Readonly<RequestRecord>, reading: OutcomeReading): Observation | null {
  const { replica, ttft_ms } = record;
  const attempt = toLastAttemptOutcome(record);
  const outcome = attempt === null ? null : reading[attempt];
  if (replica === undefined || outcome === null || record.background_ms !== undefined) return null;
  // What went before the attempt is not its replica's. Clocks differ a little.
  const beforeMs = toMsBeforeLastAttempt(record);
  return {
    ...toCommon(record),
    replica,
    cachedTokens: record.cached_tokens ?? null,
    completionTokens: record.completion_tokens ?? null,
    ttftMs: ttft_ms === undefined ? null : Math.max(0, ttft_ms - beforeMs),
    gapMs: record.gap_p50_ms ?? null,
    e2eMs: Math.max(0, record.e2e_ms - beforeMs),
    outcome,
    finish: record.finish_reasons?.[0] ?? null,
  };
}

/** What is known of an attempt without an answer that the client got. */
const WITHOUT_ANSWER = {
  cachedTokens: null,
  completionTokens: null,
  ttftMs: null,
  gapMs: null,
  finish: null,
} as const;

/** What all attempts of a request have in common. */
function toCommon(record: Readonly<RequestRecord>) {
  const { prompt_tokens, prompt_chars } = record;
  const estimated = prompt_chars === undefined ? null : Math.round(prompt_chars / CHARS_PER_TOKEN);
  return {
    model: record.model ?? null,
    endpoint: record.endpoint,
    stream: record.stream,
    promptTokens: prompt_tokens ?? estimated,
    maxTokens: record.max_tokens ?? null,
  };
}
