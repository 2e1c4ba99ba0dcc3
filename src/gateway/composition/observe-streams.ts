import { toMsBeforeLastAttempt, toOutcome } from '#otel/outcome';
import type { EndedRecord } from '#otel/queue';
import type { ReplicaControl } from '#replicas/control';

/** Creates the function that passes the times of each stream that has ended well, from which follows when others are silent. */
export function createStreamObserver(replicas: Pick<ReplicaControl, 'learn'>): (ended: EndedRecord) => void {
  return ({ record }) => {
    if (!record.stream || toOutcome(record) !== 'success') return;
    const { model, prompt_chars, ttft_ms, gap_p95_ms } = record;
    // What went before the last attempt is not its replica's.
    const beforeMs = toMsBeforeLastAttempt(record);
    replicas.learn({
      model: model ?? '',
      promptChars: prompt_chars ?? null,
      firstTokenMs: ttft_ms === undefined ? null : Math.max(0, ttft_ms - beforeMs),
      gapMs: gap_p95_ms ?? null,
    });
  };
}
