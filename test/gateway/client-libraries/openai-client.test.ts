import OpenAI, { APIConnectionError, BadRequestError, InternalServerError, NotFoundError } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import type { SimulatedReplicaSettings } from '#simulate';
import type { EventLog } from '#testkit/event-log.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import type { ServedRequest } from '../../../src/simulate/settings.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Tell me about gateways.' }];

interface Setting {
  readonly gateway: StartedGateway;
  readonly client: OpenAI;
  readonly served: EventLog<ServedRequest>;
}

/** The official client, a gateway, and behind it a simulated replica that answers at once. */
async function start(settings: Partial<SimulatedReplicaSettings> = {}): Promise<Setting> {
  const { url, replica, served } = await startSimulatedReplica(settings);
  onTestFinished(() => replica.close());
  const gateway = await startGateway({
    replicas: [{ name: 'a', url, models: 'auto', engine: 'auto' }],
  });
  onTestFinished(async () => {
    await gateway.close();
  });
  return { gateway, client: clientOf(gateway), served };
}

function clientOf(gateway: StartedGateway): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'client-key', maxRetries: 0 });
}

const ENGINES = ['vllm', 'llamacpp', 'openai'] as const;

test.for(ENGINES)(
  'a chat completion of %s: the record has what the client and the replica have',
  async (engine) => {
    const { gateway, client, served } = await start({ engine });

    const completion = await client.chat.completions.create({
      model: 'm',
      messages: MESSAGES,
      max_tokens: 5,
    });

    const record = await gateway.nextRecord();
    const { usage } = await served.next();
    expect(completion.choices[0]?.message.content).toBeTruthy();
    expect(record).toMatchObject({
      endpoint: '/v1/chat/completions',
      stream: false,
      status: 200,
      max_tokens: 5,
      prompt_chars: MESSAGES[0]?.content.length,
      prompt_tokens: usage?.promptTokens,
      completion_tokens: usage?.completionTokens,
      finish_reasons: ['length'],
    });
    expect(completion.usage?.prompt_tokens).toBe(record.prompt_tokens);
  },
);

test.for(ENGINES)(
  'a stream of %s: no usage that was not asked for, all of it in the record',
  async (engine) => {
    const { gateway, client, served } = await start({ engine });

    const stream = await client.chat.completions.create({ model: 'm', messages: MESSAGES, stream: true });
    let text = '';
    for await (const chunk of stream) {
      expect(chunk.choices).not.toEqual([]);
      expect(chunk.usage ?? null).toBeNull();
      text += chunk.choices[0]?.delta.content ?? '';
    }

    const record = await gateway.nextRecord();
    const { usage } = await served.next();
    expect(text).not.toBe('');
    expect(record).toMatchObject({
      stream: true,
      status: 200,
      prompt_tokens: usage?.promptTokens,
      completion_tokens: usage?.completionTokens,
      finish_reasons: ['stop'],
      ttft_ms: expect.any(Number),
      gap_p50_ms: expect.any(Number),
      gap_p95_ms: expect.any(Number),
    });
    expect(record.e2e_ms).toBeGreaterThanOrEqual(record.ttft_ms ?? Number.POSITIVE_INFINITY);
  },
);

test.for(ENGINES)('a stream of %s with usage asked for ends in the usage chunk', async (engine) => {
  const { gateway, client } = await start({ engine });

  const stream = await client.chat.completions.create({
    model: 'm',
    messages: MESSAGES,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await Array.fromAsync(stream);

  const last = chunks.at(-1);
  expect(last?.choices).toEqual([]);
  expect(last?.usage?.prompt_tokens).toBe((await gateway.nextRecord()).prompt_tokens);
});

test('cached tokens of a repeated prompt reach the record', async () => {
  const { gateway, client, served } = await start();
  const messages = [{ role: 'user' as const, content: 'one and the same prefix '.repeat(40) }];
  for (let i = 0; i < 2; i++) await client.chat.completions.create({ model: 'm', messages });

  const [first, second] = await gateway.waitForRecords(2);
  const [, repeated] = await served.count(2);
  expect(first?.cached_tokens ?? 0).toBe(0);
  expect(second?.cached_tokens).toBeGreaterThan(0);
  expect(second?.cached_tokens).toBe(repeated?.usage?.cachedTokens);
  expect(second?.prefix_hashes).toEqual(first?.prefix_hashes);
  expect(second?.prefix_hashes).toHaveLength(1);
});

test('tool calls pass, plain and streamed', async () => {
  const { gateway, client } = await start();
  const request = {
    model: 'm',
    messages: MESSAGES,
    tool_choice: 'required' as const,
    tools: [
      {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    ],
  };

  const plain = await client.chat.completions.create(request);
  const chunks = await Array.fromAsync(await client.chat.completions.create({ ...request, stream: true }));

  const [call] = plain.choices[0]?.message.tool_calls ?? [];
  const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
  const streamedArguments = deltas.map((delta) => delta.function?.arguments ?? '').join('');
  expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } });
  expect(JSON.parse(streamedArguments)).toHaveProperty('city');
  const records = await gateway.waitForRecords(2);
  expect(records.map((record) => record.finish_reasons)).toEqual([['tool_calls'], ['tool_calls']]);
  expect(records[1]?.ttft_ms).toBeDefined();
});

test('several choices have a finish reason each', async () => {
  const { gateway, client } = await start();

  await Array.fromAsync(
    await client.chat.completions.create({ model: 'm', messages: MESSAGES, n: 3, stream: true }),
  );

  expect(await gateway.nextRecord()).toMatchObject({ finish_reasons: ['stop', 'stop', 'stop'] });
});

test.for(ENGINES)('legacy completions of %s, plain and streamed', async (engine) => {
  const { gateway, client, served } = await start({ engine });

  const plain = await client.completions.create({ model: 'm', prompt: 'abc' });
  await Array.fromAsync(await client.completions.create({ model: 'm', prompt: 'abc', stream: true }));

  expect(plain.choices[0]?.text).toBeTruthy();
  const records = await gateway.waitForRecords(2);
  const requests = await served.count(2);
  for (const [i, record] of records.entries()) {
    expect(record).toMatchObject({
      endpoint: '/v1/completions',
      prompt_chars: 3,
      prompt_tokens: requests[i]?.usage?.promptTokens,
      completion_tokens: requests[i]?.usage?.completionTokens,
    });
  }
});

test('embeddings of texts and of token ids', async () => {
  const { gateway, client } = await start();

  const answer = await client.embeddings.create({ model: 'm', input: ['abc', 'défg'] });
  await client.embeddings.create({ model: 'm', input: [1, 2, 3] });

  expect(answer.data).toHaveLength(2);
  const [texts, tokens] = await gateway.waitForRecords(2);
  expect(texts).toMatchObject({
    endpoint: '/v1/embeddings',
    stream: false,
    prompt_chars: 7,
    prompt_tokens: answer.usage.prompt_tokens,
  });
  expect(tokens?.prompt_chars).toBeUndefined();
});

test('the model list', async () => {
  const { gateway, client } = await start({ models: ['m', 'n'] });

  const { data } = await client.models.list();

  expect(data.map(({ id }) => id)).toEqual(['m', 'n']);
  expect(gateway.records).toEqual([]);
});

test('errors of the gateway have the class, code and id that the client expects', async () => {
  const { gateway, client } = await start();

  const error = await client.chat.completions
    .create({ model: 'x', messages: MESSAGES })
    .catch((e: unknown) => e);

  expect(error).toBeInstanceOf(NotFoundError);
  expect(error).toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
    type: 'invalid_request_error',
  });
  expect((error as NotFoundError).requestID).toBe((await gateway.nextRecord()).request_id);
});

test('errors of the replica come as they are', async () => {
  const { gateway, client } = await start({ maxModelTokens: 4 });

  const error = await client.chat.completions
    .create({ model: 'm', messages: MESSAGES })
    .catch((e: unknown) => e);

  expect(error).toBeInstanceOf(BadRequestError);
  expect(await gateway.nextRecord()).toMatchObject({ status: 400, replica: 'a' });
});

test('a stream that breaks makes the client throw, with our code', async () => {
  const { gateway, client } = await start({ errorRate: 1, faults: ['cut'] });

  const stream = await client.chat.completions.create({ model: 'm', messages: MESSAGES, stream: true });
  const error = await Array.fromAsync(stream).catch((e: unknown) => e);

  expect(error).toMatchObject({ code: 'upstream_failed' });
  expect(await gateway.nextRecord()).toMatchObject({ status: 200, truncated: true });
});

test('Retry-After is heeded: with every replica drained the client tries again, and succeeds after an undrain', async () => {
  const { gateway } = await start();
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'k', maxRetries: 5 });

  const completion = client.chat.completions.create({ model: 'm', messages: MESSAGES });
  expect(await gateway.nextRecord()).toMatchObject({ status: 503, error_type: 'all_replicas_drained' });
  await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });

  expect((await completion).choices).toHaveLength(1);
});

test('without retries a drained replica is an InternalServerError', async () => {
  const { gateway, client } = await start();
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

  const error = await client.chat.completions
    .create({ model: 'm', messages: MESSAGES })
    .catch((e: unknown) => e);

  expect(error).toBeInstanceOf(InternalServerError);
  expect(error).toMatchObject({ status: 503, code: 'all_replicas_drained' });
});

test('an abort in the middle of a stream stops the replica', async () => {
  const { gateway, client, served } = await start({ gapMs: 5, tokens: 100_000 });

  const stream = await client.chat.completions.create({ model: 'm', messages: MESSAGES, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content) stream.controller.abort();
  }

  expect(await served.next()).toMatchObject({ ending: 'client_gone' });
  expect(await gateway.nextRecord()).toMatchObject({
    status: 200,
    error_type: 'client_closed',
    truncated: true,
  });
});

test('an abort before the answer stops the replica', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({ replicas: [replica] });
  const leave = new AbortController();

  const completion = clientOf(gateway).chat.completions.create(
    { model: 'm', messages: MESSAGES },
    { signal: leave.signal },
  );
  const received = await replica.nextRequest();
  leave.abort();

  await expect(completion).rejects.toBeInstanceOf(Error);
  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 499 });
});

test('a gateway that is gone is a connection error', async () => {
  const { gateway, client } = await start();
  await gateway.close();

  await expect(client.models.list()).rejects.toBeInstanceOf(APIConnectionError);
});
