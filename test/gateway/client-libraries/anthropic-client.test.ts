import Anthropic, { APIError, NotFoundError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  type FakeReplica,
  partial,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const REQUEST = { model: 'm', max_tokens: 8, messages: [{ role: 'user' as const, content: 'Hello' }] };
const ANSWER = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'tool_use', id: 't', name: 'add', input: { a: 9007199254740993n.toString() } }],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 1, cache_read_input_tokens: 10, cache_creation_input_tokens: 0, output_tokens: 8 },
};

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({ replicas: [replica], config: { endpoints: ['messages'] } });
});
beforeEach(() => replica.answer(answerJson(ANSWER)));
afterAll(async () => {
  await gateway.close();
  await replica.close();
});

/** The replica takes a request without it for a probe. */
const NO_PROBE = { 'X-Request-Id': 'client-1' };

/** The official client of Anthropic's API, straight to the replica or through the gateway. */
const clientOf = ({ url }: { readonly url: string }) =>
  new Anthropic({ baseURL: url, apiKey: 'client-key', maxRetries: 0, defaultHeaders: NO_PROBE });

describe("Anthropic's client", () => {
  test('gets the message that the replica sends, with tools', async () => {
    const tools = [{ name: 'add', input_schema: { type: 'object' as const } }];
    const direct = await clientOf(replica).messages.create({ ...REQUEST, tools });
    const relayed = await clientOf(gateway).messages.create({ ...REQUEST, tools });

    expect(relayed).toEqual(direct);
    expect(await gateway.nextRecord()).toMatchObject({
      prompt_tokens: 11,
      completion_tokens: relayed.usage.output_tokens,
      cached_tokens: 10,
      finish_reasons: ['tool_use'],
      response_id: 'msg_1',
      max_tokens: 8,
      prompt_chars: 5,
    });
  });

  test.for(['llama', 'vllm'])('gets the events of a stream of %s', async (engine) => {
    replica.answer(answerStream(readCapture(`${engine}/messages-stream`).chunks));
    const eventsOf = async (client: Anthropic) =>
      await Array.fromAsync(await client.messages.create({ ...REQUEST, stream: true }));
    const relayed = await eventsOf(clientOf(gateway));

    expect(relayed).toEqual(await eventsOf(clientOf(replica)));
    const last = relayed.findLast((event) => event.type === 'message_delta');
    expect(await gateway.nextRecord()).toMatchObject({
      stream: true,
      prompt_tokens: 11,
      completion_tokens: last?.usage.output_tokens,
      finish_reasons: [last?.delta.stop_reason],
    });
  });

  test('puts the message of a stream together', async () => {
    replica.answer(answerStream(readCapture('llama/messages-stream').chunks));
    const message = await clientOf(gateway).messages.stream(REQUEST).finalMessage();

    expect(message.usage).toMatchObject({ cache_read_input_tokens: 10, output_tokens: 8 });
    expect(message.content).toMatchObject([{ type: 'text', text: expect.stringContaining('show') }]);
    await gateway.nextRecord();
  });

  test('counts tokens', async () => {
    replica.answer(answerJson({ input_tokens: 11 }));
    const { max_tokens, ...request } = REQUEST;

    expect((await clientOf(gateway).messages.countTokens(request)).input_tokens).toBe(11);
    expect((await gateway.nextRecord()).endpoint).toBe('/v1/messages/count_tokens');
  });

  test("throws the gateway's own error as one of its API", async () => {
    const failed = clientOf(gateway).messages.create({ ...REQUEST, model: 'other' });

    await expect(failed).rejects.toBeInstanceOf(NotFoundError);
    await expect(failed).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
    await gateway.nextRecord();
  });

  test('throws when a stream breaks off', async () => {
    const beginning = readCapture('vllm/messages-stream').chunks.slice(0, 2);
    replica.answer(partial('text/event-stream', beginning, 'reset'));
    const reading = clientOf(gateway)
      .messages.create({ ...REQUEST, stream: true })
      .then((stream) => Array.fromAsync(stream));

    await expect(reading).rejects.toBeInstanceOf(APIError);
    await expect(reading).rejects.toMatchObject({ type: 'api_error' });
    expect(await gateway.nextRecord()).toMatchObject({ error_type: 'upstream_failed', truncated: true });
  });
});
