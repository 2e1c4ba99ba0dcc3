import { z } from 'zod';

const text = () => z.string().optional();
const count = () => z.int().optional();
const milliseconds = () => z.number().optional();

/** A request record as the admin API shows it: its fields without prefix. An absent one is unknown. */
export const recordSchema = z
  .object({
    request_id: z.string(),
    trace_id: z.string(),
    ts: z.string().describe('When the request arrived: RFC 3339.'),
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
  .meta({ id: 'Record', description: 'The facts of one request; docs/record.md says what each means.' });
