import { expect, it } from 'vitest';
import { toRecordLine } from '../../../src/cli/serve/quickstart/quickstart.ts';

const request = {
  request_id: '6d2b0a52-7a2e-4d2a-9f3b-0a8c2e5b1d11',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  ts: '2026-11-21T08:16:20.123Z',
  endpoint: '/v1/chat/completions',
} as const;

it('a record is one line with its known fields', () => {
  const line = toRecordLine({
    ...request,
    replica: 'sim-a',
    model: 'demo',
    tenant: 'acme',
    prompt_tokens: 12,
    completion_tokens: 32,
    cached_tokens: 0,
    ttft_ms: 81.2,
    gap_p50_ms: 19.6,
    gap_p95_ms: 28.1,
    e2e_ms: 702.4,
    status: 200,
    stream: true,
  });
  expect(line).toBe(
    '08:16:20.123  200  sim-a  demo  chat  in 12  out 32  cached 0  ttft 81 ms  gaps 20/28 ms  e2e 702 ms  ' +
      'tenant acme  trace 0af7651916cd43dd8448eb211c80319c',
  );
});

it('a failed request says why, and nothing about what is unknown', () => {
  const line = toRecordLine({
    ...request,
    e2e_ms: 1.25,
    status: 404,
    stream: false,
    error_type: 'model_not_found',
  });
  expect(line).toBe(
    '08:16:20.123  404  -      -  chat  e2e 1.3 ms  model_not_found  trace 0af7651916cd43dd8448eb211c80319c',
  );
});

it('what a client chose cannot control the terminal', () => {
  const line = toRecordLine({
    ...request,
    model: `\u001b[2J\n${'x'.repeat(300)}`,
    e2e_ms: 1,
    status: 404,
    stream: false,
  });
  expect(line).toContain('?[2J?xxx');
  expect(line).not.toMatch(/\p{Cc}/u);
  expect(line.length).toBeLessThan(150);
});
