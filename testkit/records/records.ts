import type { Attributes } from '@opentelemetry/api';
import { type HttpFacts, type RequestNotes, toRequestAttributes } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';

/** The record of a plain success, with required fields only. Frozen: test files share it, and numbering changes records. */
export const LEAST_RECORD: RequestRecord = Object.freeze({
  request_id: '0b1c2d3e-4f50-4162-8394-a5b6c7d8e9f0',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  ts: '2026-11-21T08:00:00.123Z',
  endpoint: '/v1/chat/completions',
  e2e_ms: 85,
  status: 200,
  stream: false,
});

/** A record with every field that is an attribute. Doubles are integral where the SDK would make ints of them. */
export const FULL_RECORD: Required<Omit<RequestRecord, 'failed_attempts'>> = Object.freeze({
  ...LEAST_RECORD,
  replica: 'vllm-a',
  model: 'llama-3.3-70b',
  tenant: 'acme',
  feature: 'søk',
  prompt_tokens: 120,
  completion_tokens: 45,
  cached_tokens: 0,
  ttft_ms: 31,
  e2e_ms: 85,
  gap_p50_ms: 12,
  gap_p95_ms: 19.25,
  status: 200,
  stream: true,
  max_tokens: 256,
  prompt_chars: 480,
  prefix_hashes: ['00112233aabbccdd', 'ffeeddccbbaa0011'],
  error_type: 'upstream_failed',
  refused_by: 'tenant.max_inflight',
  finish_reasons: ['stop', 'length'],
  reasoning_tokens: 7,
  prompt_audio_tokens: 229,
  prompt_image_tokens: 1196,
  completion_audio_tokens: 64,
  usage_source: 'final',
  tokens_per_second: 85.25,
  silence_ms: 9050.25,
  silence_after_ms: 1310.5,
  gpu_seconds: 1.875,
  cost: 4,
  currency: 'EUR',
  background_ms: 61250.5,
  background_end: 'ended',
  cache_creation_tokens: 32,
  model_requested: 'gpt-4o',
  request_bytes: 1_048_576,
  audio_seconds: 12.5,
  response_id: 'chatcmpl-8b855979c5163ef4',
  response_model: 'llama-3.3-70b-fp8',
  previous_response_id: 'resp_a52bf61b06981d50',
  conversation_id: 'session-42',
  reasoning_level: 'low',
  queue_ms: 20,
  attempts: 2,
  route_reason: 'prefix',
  route_candidates: 3,
  route_ruled_out: { drained: 1, at_limit: 2 },
  route_prefix_blocks: 4,
  route_prefix_share: 1,
  route_prefix_miss: 'elsewhere',
  truncated: true,
  client_request_id: 'client-1',
  client: 'search-team',
  client_subject: 'CN=batch-jobs,O=Example',
  instance: '3f0c2a9e-8d0b-4a77-9a55-0f6f1f1f3f52',
  seq: 4711,
  timings: { queue_time_ms: 4, prompt_ms: 20, predicted_ms: 2500, predicted_per_second: 91.5 },
});

/** Everything that a request may say of itself beside its record. */
export const FULL_NOTES: Required<RequestNotes> = {
  parameters: {
    temperature: 1,
    topP: 0.9,
    topK: 40,
    frequencyPenalty: 0.5,
    presencePenalty: -0.5,
    seed: 7,
    choiceCount: 2,
    outputType: 'json',
  },
  names: { user: 'u-1', session: 's-1', agent: 'researcher', prompt: 'support', promptVersion: '12' },
};

/** The attributes that the span of a record has on the wire. */
export function toAttributes(record: RequestRecord, http: HttpFacts): Attributes {
  return toRequestAttributes(record, http);
}
