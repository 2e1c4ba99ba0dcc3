import type { RequestRecord } from '#otel/record/registry';

/** What a record says beside ids of its own, its number and times: what the same exchange gives again. */
export function lastingFactsOf(record: Readonly<RequestRecord> | undefined): Partial<RequestRecord> {
  const {
    request_id,
    trace_id,
    ts,
    e2e_ms,
    ttft_ms,
    gap_p50_ms,
    gap_p95_ms,
    tokens_per_second,
    silence_ms,
    silence_after_ms,
    seq,
    ...facts
  } = { ...record };
  return facts;
}
