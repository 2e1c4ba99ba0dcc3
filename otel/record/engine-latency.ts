type Timings = Readonly<Record<string, number>>;

/** How long a request waited in the engine, in seconds: `queue_time_ms` of vLLM. */
export function toQueueSeconds({ queue_time_ms }: Timings): number | undefined {
  return toSeconds(queue_time_ms);
}

/**
 * How long the engine read the prompt, in seconds. vLLM's `time_to_first_token_ms` begins when the request is scheduled,
 * after its wait (vLLM documentation, "Per-Request Metrics"). llama.cpp's is `prompt_ms`.
 */
export function toPrefillSeconds({ time_to_first_token_ms, prompt_ms }: Timings): number | undefined {
  return toSeconds(time_to_first_token_ms ?? prompt_ms);
}

/** How long the engine generated after the prompt, in seconds: `generation_time_ms` of vLLM, `predicted_ms` of llama.cpp. */
export function toDecodeSeconds({ generation_time_ms, predicted_ms }: Timings): number | undefined {
  return toSeconds(generation_time_ms ?? predicted_ms);
}

/** What an engine says may be anything. */
function toSeconds(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= 0 ? ms / 1000 : undefined;
}
