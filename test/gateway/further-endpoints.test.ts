import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { readCapture } from '../support/captures.ts';
import {
  answerJson,
  answerRaw,
  answerStream,
  type FakeReplica,
  type Script,
  startFakeReplica,
} from '../support/fake-replica.ts';
import { type StartedGateway, startGateway } from '../support/start-gateway.ts';

const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const COUNT_TOKENS = '/v1/messages/count_tokens';
const PATHS = [RESPONSES, MESSAGES, COUNT_TOKENS] as const;

async function start(
  config: Readonly<Record<string, Readonly<Record<string, unknown>> | readonly string[]>> = {},
): Promise<{ readonly replica: FakeReplica; readonly gateway: StartedGateway }> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  const gateway = await startGateway({
    replicas: [replica],
    config: { endpoints: ['responses', 'messages'], ...config },
  });
  onTestFinished(async () => {
    await gateway.close();
  });
  return { replica, gateway };
}

/** What a record says beside ids of its own and times. */
function factsOf(record: Readonly<RequestRecord>): Partial<RequestRecord> {
  const { request_id, trace_id, ts, e2e_ms, ttft_ms, gap_p50_ms, gap_p95_ms, ...facts } = record;
  return facts;
}

/** Streams these bytes and breaks the connection. */
const breakAfter =
  (bytes: string | Uint8Array): Script =>
  async ({ request, head, write, reset }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(bytes);
    reset();
  };

describe('endpoints that the configuration does not name', () => {
  test('are not found, as the contract has it, and leave no record', async () => {
    const { gateway, replica } = await start({ endpoints: [] });
    for (const path of PATHS) {
      const response = await gateway.post(path, { model: 'm' });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: 'not_found', param: null } });
    }
    await gateway.chat();
    await gateway.nextRecord();
    expect(gateway.records).toHaveLength(1);
    expect(replica.requests.map(({ url }) => url)).toEqual(['/v1/chat/completions']);
  });

  test('are switched on and off by a reload', async () => {
    const { gateway } = await start({ endpoints: [] });
    const statusOf = async (path: string) => (await gateway.post(path, { model: 'm' })).status;

    gateway.writeConfig({ config: { endpoints: ['messages'] } });
    expect(await (await gateway.reload()).json()).toMatchObject({ changed: ['endpoints'] });
    expect(await Promise.all(PATHS.map(statusOf))).toEqual([404, 200, 200]);

    gateway.writeConfig({ config: { endpoints: [] } });
    await gateway.reload();
    expect(await Promise.all(PATHS.map(statusOf))).toEqual([404, 404, 404]);
  });

  test('are not found by any other method', async () => {
    const { gateway } = await start();
    for (const path of PATHS) expect((await fetch(gateway.url + path)).status).toBe(404);
    expect((await gateway.post(`${MESSAGES}/`, { model: 'm' })).status).toBe(404);
  });
});

describe('a stream', () => {
  const streams = [
    [RESPONSES, 'llama/responses-stream'],
    [RESPONSES, 'vllm/responses-stream'],
    [MESSAGES, 'llama/messages-stream'],
    [MESSAGES, 'vllm/messages-stream'],
  ] as const;

  test.for(streams)(
    'of %s (%s) reaches the client byte for byte, with the same record however it is cut',
    async ([path, name]) => {
      const { gateway, replica } = await start();
      const { body } = readCapture(name);
      const relay = async (pieces: readonly Buffer[]) => {
        replica.answer(answerStream(pieces));
        const response = await gateway.post(path, { model: 'm', stream: true });
        expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true);
        return factsOf(await gateway.nextRecord());
      };
      const facts = await relay([body]);
      expect(facts).toMatchObject({
        endpoint: path,
        stream: true,
        status: 200,
        prompt_tokens: 11,
        completion_tokens: 8,
        response_model: 'tiny',
      });
      expect(facts.truncated).toBeUndefined();

      const places = fc.array(fc.integer({ min: 1, max: body.length - 1 }), { maxLength: 30 });
      await fc.assert(
        fc.asyncProperty(places, async (cuts) => {
          const edges = [0, ...[...new Set(cuts)].sort((a, b) => a - b), body.length];
          const pieces = edges.slice(1).map((edge, i) => body.subarray(edges[i], edge));
          expect(await relay(pieces)).toEqual(facts);
        }),
        { numRuns: 12 },
      );
    },
  );

  test('has its first output and its gaps in the record', async () => {
    const { gateway, replica } = await start();
    replica.answer(answerStream(readCapture('vllm/messages-stream').chunks));
    await (await gateway.post(MESSAGES, { model: 'm', stream: true })).text();
    const { ttft_ms = 0, e2e_ms, gap_p50_ms } = await gateway.nextRecord();
    expect(ttft_ms).toBeGreaterThan(0);
    expect(ttft_ms).toBeLessThanOrEqual(e2e_ms);
    expect(gap_p50_ms).toBeDefined();
  });

  test.for([
    [RESPONSES, 'vllm/responses-stream', 'response.output_text.done'],
    [MESSAGES, 'vllm/messages-stream', 'message_stop'],
  ] as const)('of %s that ends without its end mark is truncated', async ([path, name, last]) => {
    const { gateway, replica } = await start();
    const text = readCapture(name).body.toString();
    const cut = text.slice(0, text.indexOf(`event: ${last}`));
    replica.answer(answerStream([cut]));
    expect(await (await gateway.post(path, { model: 'm', stream: true })).text()).toBe(cut);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, truncated: true });
  });

  test.for([
    [RESPONSES, 'vllm/responses-stream', { type: 'error', code: 'upstream_failed', param: null }],
    [
      MESSAGES,
      'vllm/messages-stream',
      { type: 'error', error: { type: 'api_error', code: 'upstream_failed' } },
    ],
  ] as const)(
    'of %s that breaks off ends with an error event of that API',
    async ([path, name, expected]) => {
      const { gateway, replica } = await start();
      const begun = readCapture(name).body.subarray(0, 500).toString();
      replica.answer(breakAfter(begun));
      const text = await (await gateway.post(path, { model: 'm', stream: true })).text();
      expect(text.startsWith(`${begun}\n\nevent: error\ndata: {`)).toBe(true);
      const [data = ''] = text.slice(begun.length).match(/\{.*\}/) ?? [];
      expect(JSON.parse(data)).toMatchObject(expected);
      expect(await gateway.nextRecord()).toMatchObject({
        status: 200,
        error_type: 'upstream_failed',
        truncated: true,
      });
    },
  );

  test('whose last event is larger than limits.event is relayed, and not said to be truncated', async () => {
    const { gateway, replica } = await start({ limits: { event: '64KiB' } });
    const first = 'data: {"type":"response.created","response":{"id":"r"}}\n\n';
    const response = { output: ['x'.repeat(1_000_000)], usage: { input_tokens: 7 } };
    const last = `data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`;
    replica.answer(answerStream([first, last]));
    const answer = await gateway.post(RESPONSES, { model: 'm', stream: true });
    expect((await answer.text()) === first + last).toBe(true);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ response_id: 'r', status: 200 });
    expect(record.prompt_tokens).toBeUndefined();
    expect(record.truncated).toBeUndefined();
  });

  test('that breaks off after its end mark is whole', async () => {
    const { gateway, replica } = await start();
    const { body } = readCapture('llama/messages-stream');
    replica.answer(breakAfter(body));
    const response = await gateway.post(MESSAGES, { model: 'm', stream: true });
    expect(await response.text()).toBe(body.toString());
    const record = await gateway.nextRecord();
    expect(record.truncated).toBeUndefined();
    expect(record.error_type).toBeUndefined();
  });
});

describe('a request', () => {
  test('for the count of tokens is recorded without tokens and without its text', async () => {
    const { gateway, replica } = await start({ prefix_hash: { block_chars: 1 } });
    replica.answer(answerJson({ input_tokens: 11 }));
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await gateway.post(COUNT_TOKENS, { model: 'm', messages });
    expect(await response.json()).toEqual({ input_tokens: 11 });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ endpoint: COUNT_TOKENS, model: 'm', status: 200, replica: 'a' });
    for (const field of ['prompt_tokens', 'prompt_chars', 'prefix_hashes'] as const) {
      expect(record[field]).toBeUndefined();
    }
  });

  test('of 300 KB is read like a small one', async () => {
    const { gateway } = await start();
    const text = 'é'.repeat(150_000);
    for (const messages of [
      [{ role: 'user', content: [{ type: 'text', text }] }],
      [{ role: 'user', content: text }],
    ]) {
      await gateway.post(MESSAGES, { model: 'm', max_tokens: 7, messages });
    }
    const [first, second] = await gateway.waitForRecords(2);
    expect(first).toMatchObject({ prompt_chars: 150_000, max_tokens: 7 });
    expect(second?.prefix_hashes).toHaveLength(128);
    expect(second?.prefix_hashes).toEqual(first?.prefix_hashes);
  });

  test.for([
    [RESPONSES, { input: 'x', max_output_tokens: 9, max_tokens: 1 }],
    [MESSAGES, { messages: [], max_tokens: 9, max_output_tokens: 1 }],
  ] as const)('to %s is limited by its own member', async ([path, body]) => {
    const { gateway } = await start();
    await gateway.post(path, { model: 'm', ...body });
    expect(await gateway.nextRecord()).toMatchObject({ max_tokens: 9 });
  });

  test.for([
    [{ 'X-Session-Id': ' s-1 ' }, { conversation: 'c', prompt_cache_key: 'k' }, 's-1'],
    [{}, { conversation: 'c', metadata: { session_id: 's' } }, 'c'],
    [{}, { conversation: { id: 'c' }, metadata: { session_id: 's' } }, 'c'],
    [{}, { metadata: { a: [1], session_id: 's' }, prompt_cache_key: 'k' }, 's'],
    [{}, { prompt_cache_key: 'a\u202e\u0000b' }, 'ab'],
    [{}, { conversation: 7, metadata: 's', prompt_cache_key: '' }, undefined],
    [{}, { conversation: 'x'.repeat(2000), metadata: { session_id: null } }, undefined],
  ] as const)('names its conversation: %#', async ([headers, members, expected]) => {
    const { gateway } = await start();
    await gateway.chat(members, { headers });
    expect((await gateway.nextRecord()).conversation_id).toBe(expected);
  });

  test('names its conversation in the header of the configuration', async () => {
    const { gateway } = await start({ headers: { conversation: 'X-Thread' } });
    await gateway.post(
      RESPONSES,
      { model: 'm', previous_response_id: 'resp_1' },
      { headers: { 'X-Thread': 't' } },
    );
    expect(await gateway.nextRecord()).toMatchObject({
      conversation_id: 't',
      previous_response_id: 'resp_1',
    });
  });
});

describe('an error', () => {
  const expectedOf = {
    not_found_error: [404, 'model_not_found'],
    invalid_request_error: [400, 'invalid_json'],
  };

  test.for([
    [{ model: 'other' }, 'not_found_error'],
    ['{', 'invalid_request_error'],
  ] as const)('of the gateway has the form of the API: %j', async ([body, type]) => {
    const { gateway } = await start();
    const [status, code] = expectedOf[type];
    for (const path of [MESSAGES, COUNT_TOKENS]) {
      const response = await gateway.post(path, body);
      expect(response.status).toBe(status);
      expect(await response.json()).toEqual({
        type: 'error',
        error: { type, message: expect.any(String), code },
      });
      expect(await gateway.nextRecord()).toMatchObject({ status, error_type: code });
    }
    const response = await gateway.post(RESPONSES, body);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error', code } });
    await gateway.nextRecord();
  });

  test('of the replica is relayed as it is', async () => {
    const { gateway, replica } = await start();
    const body = '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}';
    replica.answer(
      answerRaw(
        `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    const response = await gateway.post(MESSAGES, { model: 'm' });
    expect(response.status).toBe(400);
    expect(await response.text()).toBe(body);
    expect((await gateway.nextRecord()).error_type).toBeUndefined();
  });
});

test('a client key in x-api-key does not reach a replica that has a key of its own', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, api_key: 'replica-key' }],
    config: { endpoints: ['messages'] },
  });
  await gateway.post(MESSAGES, { model: 'm' }, { headers: { 'x-api-key': 'client-key' } });
  const request = await replica.nextRequest();
  expect(request.header('x-api-key')).toEqual([]);
  expect(request.header('authorization')).toEqual(['Bearer replica-key']);
});
