import { getStringListFromEnv } from '@opentelemetry/core';

/** Which names of GenAI's conventions: the pinned version that backends read, or the newest text. */
export type GenAiNames = 'pinned' | 'latest';

/** The newest names if OTEL_SEMCONV_STABILITY_OPT_IN asks for them, as the conventions define it. */
export function readGenAiNames(): GenAiNames {
  const wanted = getStringListFromEnv('OTEL_SEMCONV_STABILITY_OPT_IN') ?? [];
  return wanted.includes('gen_ai_latest_experimental') ? 'latest' : 'pinned';
}
