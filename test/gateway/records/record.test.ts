import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { type CollectedSpan, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  event,
  partial,
  type Script,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const CHAT = '/v1/chat/completions';

interface Sent {
  readonly body?: string;
  readonly path?: string;
  readonly fields?: readonly string[];
  readonly script?: Script;
  readonly config?: StartGatewayOptions['config'];
}

/** Sends one request and returns its record, and the span that carried it. */
async function recordOf(sent: Sent): Promise<{ record: Readonly<RequestRecord>; span: CollectedSpan }> {
  const { body = '{"model":"m"}', path = CHAT, fields = [], script, config = {} } = sent;
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica(script === undefined ? {} : { script });
  await using gateway = await startGateway({ replicas: [replica], collector, config });
  await exchangeRaw(gateway.url, postBytes(path, body, fields));
  await collector.waitFor(({ spans }) => spans.length === 1);
  const [span] = collector.spans;
  if (span === undefined) throw new Error('no span');
  return { record: await gateway.nextRecord(), span };
}

describe('ids and times', () => {
  test('the trace of the record is the one that the replica is sent, and that of the span', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], collector });

    await gateway.chat();
    await collector.waitFor(({ spans }) => spans.length === 1);

    const [span] = collector.spans;
    const record = await gateway.nextRecord();
    const [traceparent] = (await replica.nextRequest()).header('traceparent');
    expect(traceparent).toBe(`00-${record.trace_id}-${span?.spanId}-01`);
    expect(span).toMatchObject({ traceId: record.trace_id, name: `POST ${CHAT}`, kind: 2 });
    expect(span?.parentSpanId ?? '').toBe('');
    expect(record.ts).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(record.e2e_ms).toBeGreaterThan(0);
    expect(span?.types['gateway.e2e_ms']).toBe('doubleValue');
    expect(span?.types['gateway.status']).toBe('intValue');
  });

  test.for(['00', '01'])(
    'an incoming traceparent with flags %s becomes a link, not the parent',
    async (flags) => {
      const incoming = '4bf92f3577b34da6a3ce929d0e0e4736';
      const { span } = await recordOf({ fields: [`traceparent: 00-${incoming}-00f067aa0ba902b7-${flags}`] });

      expect(span.traceId).not.toBe(incoming);
      expect(span.links).toMatchObject([{ traceId: incoming, spanId: '00f067aa0ba902b7' }]);
    },
  );

  test('with trace.incoming: ignore it becomes nothing', async () => {
    const { span } = await recordOf({
      fields: ['traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
      config: { trace: { incoming: 'ignore' } },
    });

    expect(span.links).toEqual([]);
  });
});

describe('tenant and feature', () => {
  test.for([
    ['as sent', ['X-Tenant: acme', 'X-Feature: chat ui'], { tenant: 'acme', feature: 'chat ui' }],
    ['in any case of the name', ['x-TENANT: acme'], { tenant: 'acme', feature: undefined }],
    ['in UTF-8', ['X-Tenant: caf\xc3\xa9'], { tenant: 'café' }],
    ['in latin-1', ['X-Tenant: caf\xe9'], { tenant: 'café' }],
    ['without control characters', ['X-Tenant: a\tb'], { tenant: 'ab' }],
    ['at most 256 characters', [`X-Tenant: ${'t'.repeat(300)}`], { tenant: 't'.repeat(256) }],
    ['absent without the header', [], { tenant: undefined, feature: undefined }],
    [
      'absent if the header comes twice, also with the same value',
      ['X-Tenant: one', 'X-Feature: a', 'x-tenant: two', 'X-Feature: a'],
      { tenant: undefined, feature: undefined },
    ],
  ] as const)('%s', async ([, fields, expected]) => {
    const { record, span } = await recordOf({ fields });
    for (const [name, value] of Object.entries(expected)) {
      expect(record[name as 'tenant' | 'feature'], name).toBe(value);
      expect(span.attributes[`gateway.${name}`], name).toBe(value);
    }
  });

  test('come from the headers that the configuration names', async () => {
    const { record } = await recordOf({
      fields: ['X-Org: acme', 'X-Tenant: other', 'OpenAI-Project: search'],
      config: { headers: { tenant: 'x-org', feature: 'OpenAI-Project' } },
    });
    expect(record).toMatchObject({ tenant: 'acme', feature: 'search' });
  });
});

describe('what the request says', () => {
  test.for([
    ['max_tokens', '{"model":"m","max_tokens":7}', { max_tokens: 7 }],
    [
      'max_completion_tokens first',
      '{"model":"m","max_completion_tokens":5,"max_tokens":7}',
      { max_tokens: 5 },
    ],
    ['zero as zero', '{"model":"m","max_tokens":0}', { max_tokens: 0 }],
    ['null as absent', '{"model":"m","max_tokens":null}', { max_tokens: undefined }],
    ['neither as absent', '{"model":"m"}', { max_tokens: undefined }],
    [
      'prompt_chars as code points of the text parts',
      '{"model":"m","messages":[{"role":"user","content":"é😀"},{"role":"user","content":[{"type":"text","text":"abc"},{"type":"image_url","image_url":{"url":"data:xxxx"}}]},{"role":"assistant","content":null}]}',
      { prompt_chars: 5 },
    ],
    ['prompt_chars of no text as zero', '{"model":"m","messages":[]}', { prompt_chars: 0 }],
  ] as const)('%s', async ([, body, expected]) => {
    const { record } = await recordOf({ body });
    for (const [name, value] of Object.entries(expected)) {
      expect(record[name as keyof RequestRecord], name).toBe(value);
    }
  });

  test('a model name is cut at 256 characters, never in the middle of one', async () => {
    const { record } = await recordOf({ body: JSON.stringify({ model: `${'n'.repeat(255)}😀😀` }) });
    expect(record.status).toBe(404);
    expect(record.model?.length).toBeLessThanOrEqual(257);
    expect(record.model?.isWellFormed()).toBe(true);
    expect(record.model?.startsWith('n'.repeat(255))).toBe(true);
  });

  test('the first prefix hash is what anybody can compute from the salt', async () => {
    const content = 'a'.repeat(600);
    const { record } = await recordOf({
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
    });

    const sha256 = (...parts: readonly (string | Buffer)[]) =>
      parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
    const key = sha256('test-salt');
    const start = sha256(key, 'm', '\0');
    const block = `\x1euser\n${content}`.slice(0, 512);
    expect(record.prefix_hashes).toEqual([sha256(key, start, block).toString('hex').slice(0, 16)]);
  });

  test('prefix hashes are absent when no block is complete', async () => {
    const { record } = await recordOf({
      body: '{"model":"m","messages":[{"role":"user","content":"short"}]}',
    });
    expect(record.prefix_hashes).toBeUndefined();
  });
});

describe('what the response says', () => {
  test.for([
    [
      'unknown figures are absent, never 0',
      answerJson({ choices: [], usage: { prompt_tokens: 3 } }),
      { prompt_tokens: 3, completion_tokens: undefined, cached_tokens: undefined },
    ],
    ['no usage at all', answerJson({}), { prompt_tokens: undefined, completion_tokens: undefined }],
    [
      'cached and reasoning tokens',
      answerJson({
        usage: {
          prompt_tokens: 3,
          completion_tokens: 9,
          prompt_tokens_details: { cached_tokens: 2 },
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      }),
      { cached_tokens: 2, reasoning_tokens: 4, completion_tokens: 9 },
    ],
    [
      'a zero that is reported is a zero',
      answerJson({ usage: { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 0 } } }),
      { cached_tokens: 0 },
    ],
    [
      'finish reasons by choice',
      answerJson({
        choices: [
          { index: 1, finish_reason: 'length' },
          { index: 0, finish_reason: 'stop' },
        ],
      }),
      { finish_reasons: ['stop', 'length'] },
    ],
    ['a plain answer has no ttft and no gaps', answerJson({}), { ttft_ms: undefined, gap_p50_ms: undefined }],
  ] as const)('%s', async ([, script, expected]) => {
    const { record } = await recordOf({ script });
    for (const [name, value] of Object.entries(expected)) {
      expect(record[name as keyof RequestRecord], name).toEqual(value);
    }
  });

  const outputs: readonly (readonly [name: string, delta: object, counts: boolean])[] = [
    ['content', { content: 'x' }, true],
    ['reasoning', { reasoning: 'x' }, true],
    ['reasoning_content', { reasoning_content: 'x' }, true],
    ['a refusal', { refusal: 'x' }, true],
    ['a tool call', { tool_calls: [{ index: 0, function: { name: 'f' } }] }, true],
    ['a role', { role: 'assistant' }, false],
    ['empty content', { role: 'assistant', content: '' }, false],
    ['null content', { content: null }, false],
    ['nothing', {}, false],
    ['no tool calls', { tool_calls: [] }, false],
  ];
  test.for(outputs)('%s in a delta counts as output: %o', async ([, delta, counts]) => {
    const chunk = event({ choices: [{ index: 0, delta, finish_reason: null }] });
    const { record } = await recordOf({
      body: '{"model":"m","stream":true}',
      script: answerStream([': ping\n\n', chunk, usageChunk(1, 1), DONE]),
    });
    expect(record.ttft_ms !== undefined).toBe(counts);
    expect(record.gap_p50_ms).toBeUndefined();
  });

  test('gaps of events that came in one read are zero', async () => {
    const { record } = await recordOf({
      body: '{"model":"m","stream":true}',
      script: answerStream([chatChunk('a') + chatChunk('b') + chatChunk('c') + DONE]),
    });
    expect(record).toMatchObject({ gap_p50_ms: 0, gap_p95_ms: 0 });
    expect(record.ttft_ms).toBeGreaterThan(0);
    expect(record.ttft_ms).toBeLessThanOrEqual(record.e2e_ms);
  });

  test('the last usage of a stream that is real counts: not null, not zeros', async () => {
    const running = (completion: number) =>
      event({
        choices: [{ index: 0, delta: { content: 'x' } }],
        usage: { prompt_tokens: 4, completion_tokens: completion, total_tokens: 4 + completion },
      });
    const { record } = await recordOf({
      body: '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
      script: answerStream([running(1), running(2), event({ choices: [], usage: null }), DONE]),
    });
    expect(record).toMatchObject({ prompt_tokens: 4, completion_tokens: 2 });
  });

  test('a status of 5xx, a stream error and a truncation make the span an error; a 4xx does not', async () => {
    const spanOf = async (script: Script) =>
      (await recordOf({ body: '{"model":"m","stream":true}', script })).span;
    const cut = partial('text/event-stream', [], 'cut');

    expect(await spanOf(answerJson({}, { status: 500 }))).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': '500', 'http.response.status_code': 500 },
    });
    expect(await spanOf(answerStream([event({ error: { message: 'x' } }), DONE]))).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': 'upstream_error' },
    });
    expect(await spanOf(cut)).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': 'upstream_failed', 'gateway.truncated': true },
    });
    expect((await spanOf(answerJson({}, { status: 429 }))).status.code).not.toBe(2);
  });
});
