import { describe, expect, test } from 'vitest';
import { answerJson, answerRaw, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { startFurtherEndpoints } from '#testkit/start-pair.ts';

const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const COUNT_TOKENS = '/v1/messages/count_tokens';

describe('a request', () => {
  test('for the count of tokens is recorded without tokens and without its text', async () => {
    const { gateway, replica } = await startFurtherEndpoints({ prefix_hash: { block_chars: 1 } });
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
    const { gateway } = await startFurtherEndpoints();
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
    const { gateway } = await startFurtherEndpoints();
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
    const { gateway } = await startFurtherEndpoints();
    await gateway.chat(members, { headers });
    expect((await gateway.nextRecord()).conversation_id).toBe(expected);
  });

  test('names its conversation in the header of the configuration', async () => {
    const { gateway } = await startFurtherEndpoints({ headers: { conversation: 'X-Thread' } });
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
    const { gateway } = await startFurtherEndpoints();
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
    const { gateway, replica } = await startFurtherEndpoints();
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
