import OpenAI, { APIError, NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerStream,
  type FakeReplica,
  partial,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const REQUEST = { model: 'm', instructions: 'Be brief.', input: 'Hello', max_output_tokens: 8 };

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({ replicas: [replica], config: { endpoints: ['responses'] } });
});
afterAll(async () => {
  await gateway.close();
  await replica.close();
});

/** The replica takes a request without it for a probe. */
const NO_PROBE = { 'X-Request-Id': 'client-1' };

/** The official client, straight to the replica or through the gateway. */
const clientOf = ({ url }: { readonly url: string }) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'client-key', maxRetries: 0, defaultHeaders: NO_PROBE });

const answerCapture = (name: string): Script => {
  const { status, headers, body } = readCapture(name);
  return async ({ request, head, end }) => {
    await request.body;
    await head(status, headers);
    end(body);
  };
};

describe("the responses of OpenAI's client", () => {
  test.for(['llama', 'vllm'])('are those that the replica sends (%s)', async (engine) => {
    replica.answer(answerCapture(`${engine}/responses`));
    const direct = await clientOf(replica).responses.create(REQUEST);
    const relayed = await clientOf(gateway).responses.create(REQUEST);

    expect(relayed).toEqual(direct);
    expect(await gateway.nextRecord()).toMatchObject({
      prompt_tokens: relayed.usage?.input_tokens,
      completion_tokens: relayed.usage?.output_tokens,
      cached_tokens: relayed.usage?.input_tokens_details.cached_tokens,
      finish_reasons: [relayed.status],
      response_id: relayed.id,
      response_model: relayed.model,
      max_tokens: 8,
      prompt_chars: 14,
    });
  });

  test.for(['llama', 'vllm'])('come as the events that the replica sends (%s)', async (engine) => {
    replica.answer(answerStream(readCapture(`${engine}/responses-stream`).chunks));
    const eventsOf = async (client: OpenAI) =>
      await Array.fromAsync(await client.responses.create({ ...REQUEST, stream: true }));
    const relayed = await eventsOf(clientOf(gateway));

    expect(relayed).toEqual(await eventsOf(clientOf(replica)));
    const last = relayed.at(-1);
    if (last?.type !== 'response.completed') throw new Error('the stream has no end');
    expect(await gateway.nextRecord()).toMatchObject({
      stream: true,
      prompt_tokens: last.response.usage?.input_tokens,
      completion_tokens: last.response.usage?.output_tokens,
      response_id: last.response.id,
    });
  });

  test('are errors of its API when no replica serves the model', async () => {
    const failed = clientOf(gateway).responses.create({ ...REQUEST, model: 'other' });

    await expect(failed).rejects.toBeInstanceOf(NotFoundError);
    await expect(failed).rejects.toMatchObject({ code: 'model_not_found' });
    await gateway.nextRecord();
  });

  test('end with an error when the stream breaks off', async () => {
    const beginning = readCapture('vllm/responses-stream').chunks.slice(0, 2);
    replica.answer(partial('text/event-stream', beginning, 'reset'));
    const reading = clientOf(gateway)
      .responses.create({ ...REQUEST, stream: true })
      .then((stream) => Array.fromAsync(stream));

    await expect(reading).rejects.toBeInstanceOf(APIError);
    await expect(reading).rejects.toMatchObject({ code: 'upstream_failed' });
    expect(await gateway.nextRecord()).toMatchObject({ error_type: 'upstream_failed', truncated: true });
  });
});
