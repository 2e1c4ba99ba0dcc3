import { z } from 'zod';

const text = () => z.string().optional();
const count = () => z.int().optional();
const milliseconds = () => z.number().optional();

/** A request record in the admin API. Its field names have no prefix; an absent field is unknown. */
export const recordSchema = z
  .object({
    request_id: z.string(),
    trace_id: z.string(),
    ts: z.string().describe('When the request arrived, in RFC 3339 format.'),
    replica: text(),
    model: text(),
    endpoint: z.string(),
    tenant: text(),
    feature: text(),
    prompt_tokens: count(),
    completion_tokens: count(),
    cached_tokens: count(),
    ttft_ms: milliseconds(),
    e2e_ms: z.number(),
    gap_p50_ms: milliseconds(),
    gap_p95_ms: milliseconds(),
    status: z.int(),
    stream: z.boolean(),
    max_tokens: count(),
    prompt_chars: count(),
    prefix_hashes: z.array(z.string()).readonly().optional(),
    error_type: text(),
    finish_reasons: z.array(z.string()).readonly().optional(),
    reasoning_tokens: count(),
    queue_ms: milliseconds(),
    attempts: count(),
    truncated: z.literal(true).optional(),
    client_request_id: text(),
    timings: z.record(z.string(), z.number()).readonly().optional(),
  })
  .meta({ id: 'Record', description: 'The record of one request. docs/record.md explains the fields.' });
