import { memberOf } from '#base/parsed';
import type { Observation } from '#verdict';

/** Reads one item of GET /admin/observations; null if it is none. */
export function toObservation(item: unknown): Observation | null {
  const text = (key: string) => {
    const value = memberOf(item, key);
    return typeof value === 'string' ? value : null;
  };
  const number = (key: string) => {
    const value = memberOf(item, key);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
  };
  const replica = text('replica');
  const outcome = text('outcome');
  if (replica === null) return null;
  return {
    replica,
    model: text('model'),
    endpoint: text('endpoint') ?? '',
    stream: memberOf(item, 'stream') === true,
    promptTokens: number('prompt_tokens'),
    cachedTokens: number('cached_tokens'),
    completionTokens: number('completion_tokens'),
    maxTokens: number('max_tokens'),
    ttftMs: number('ttft_ms'),
    gapMs: number('gap_ms'),
    e2eMs: number('e2e_ms') ?? 0,
    outcome: outcome === 'ok' || outcome === 'error' ? outcome : 'unclear',
    finish: text('finish'),
  };
}
