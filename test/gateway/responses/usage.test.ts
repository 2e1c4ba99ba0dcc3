import { describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  event,
  hang,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { startPair } from '#testkit/start-pair.ts';

const CHAT = '/v1/chat/completions';

const started = (engine = 'openai') => startPair({ engine });

describe('the request to the replica', () => {
  test.for([
    [
      'no stream_options: the member is put before the closing brace',
      '{"model":"m", "stream":true , "seed":12345678901234567890 }',
      '{"model":"m", "stream":true , "seed":12345678901234567890 ,"stream_options":{"include_usage":true}}',
    ],
    [
      'an empty one is filled',
      '{"model":"m","stream":true,"stream_options":{},"x":1}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true},"x":1}',
    ],
    [
      'false becomes true, and the other options stay',
      '{"stream_options": { "a" : 1.0, "include_usage" : false },"model":"m","stream":true}',
      '{"stream_options": { "a" : 1.0, "include_usage" : true },"model":"m","stream":true}',
    ],
    [
      'null becomes an object',
      '{"model":"m","stream":true,"stream_options":null}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      'every one of several is changed',
      '{"model":"m","stream_options":null,"stream":true,"stream_options":{"include_usage":false}}',
      '{"model":"m","stream_options":{"include_usage":true},"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      'one that is no object is left for the replica to refuse',
      '{"model":"m","stream":true,"stream_options":"yes"}',
      '{"model":"m","stream":true,"stream_options":"yes"}',
    ],
    [
      'one that asks already stays as it is',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      'what is nested is not top-level',
      '{"model":"m","stream":true,"metadata":{"stream_options":{"include_usage":false}}}',
      '{"model":"m","stream":true,"metadata":{"stream_options":{"include_usage":false}},"stream_options":{"include_usage":true}}',
    ],
  ])('%s', async ([, sent, received]) => {
    const pair = await started();
    const { replica, gateway } = pair;
    replica.answer(answerStream([DONE]));

    for (const path of [CHAT, '/v1/completions']) {
      await (await gateway.post(path, sent)).text();
      const request = await replica.nextRequest();
      expect((await request.body).toString()).toBe(received);
      expect(request.header('content-length')).toEqual([String(received?.length)]);
    }
  });

  test.for([
    [CHAT, '{"model":"m"}'],
    [CHAT, '{"model":"m","stream":false}'],
    [CHAT, '{"model":"m","stream":"true"}'],
    [CHAT, '{"model":"m","stream":null}'],
    [CHAT, '{"model":"m","stream":true,"stream":false}'],
    ['/v1/embeddings', '{"model":"m","stream":true}'],
  ] as const)('%s %s is not changed', async ([path, body]) => {
    const pair = await started();
    await (await pair.gateway.post(path, body)).text();
    expect((await (await pair.replica.nextRequest()).body).toString()).toBe(body);
  });

  test.for(['{}', '{"continuous_usage_stats":true}', '{"include_usage":"off"}'])(
    'vLLM is asked where the client sent %s, and the chunk withheld',
    async (options) => {
      const pair = await started('vllm');
      const { replica, gateway } = pair;
      replica.answer(answerStream([chatChunk('x'), usageChunk(3, 1), DONE]));

      const text = await (
        await gateway.post(CHAT, `{"model":"m","stream":true,"stream_options":${options}}`)
      ).text();

      const received = JSON.parse((await (await replica.nextRequest()).body).toString()) as object;
      expect(received).toMatchObject({ stream_options: { include_usage: true } });
      expect(text).toBe(chatChunk('x') + DONE);
      expect(await gateway.nextRecord()).toMatchObject({ prompt_tokens: 3, completion_tokens: 1 });
    },
  );

  test.for([
    ['vllm', 'true', '"on"'],
    ['vllm', 'true', '1'],
    ['vllm', 'true', '"maybe"'],
    ['llamacpp', 'true', '"maybe"'],
    ['ollama', 'true', '1'],
    ['openai', 'true', '"true"'],
    ['llamacpp', '1', 'false'],
    ['vllm', '"maybe"', 'false'],
  ] as const)(
    'to %s with stream %s and include_usage %s goes as it is, and so does the answer',
    async ([engine, stream, includeUsage]) => {
      const body = `{"model":"m","stream":${stream},"stream_options":{"include_usage":${includeUsage}}}`;
      const answer = chatChunk('x') + usageChunk(3, 1) + DONE;
      const pair = await started(engine);
      pair.replica.answer(answerStream([answer]));

      const text = await (await pair.gateway.post(CHAT, body)).text();

      expect((await (await pair.replica.nextRequest()).body).toString()).toBe(body);
      expect(text).toBe(answer);
    },
  );

  test('"stream":"on" is a stream to vLLM: its record has tokens', async () => {
    const pair = await started('vllm');
    pair.replica.answer(answerStream([chatChunk('x'), usageChunk(3, 1), DONE]));

    const text = await (await pair.gateway.post(CHAT, '{"model":"m","stream":"on"}')).text();

    expect(text).toBe(chatChunk('x') + DONE);
    expect(await pair.gateway.nextRecord()).toMatchObject({ prompt_tokens: 3, completion_tokens: 1 });
  });
});

describe('the release of a vLLM', () => {
  const OPTIONS = '{"model":"m","stream":true,"stream_options":{}}';
  const STREAM = [chatChunk('x'), usageChunk(3, 1), DONE];

  test.for([
    ['"0.17.1"', true],
    ['"0.17.1rc1.dev5+g1234"', true],
    ['"0.18.0"', false],
    ['"0.1.dev1+g1234"', false],
    ['"x0.17.1"', false],
    ['17', false],
    ['{"x":1}', false],
    [`"${' '.repeat(5000)}"`, false],
  ] as const)('that is told as %s decides whether it sends usage unasked: %s', async ([version, isAsked]) => {
    await using replica = await startFakeReplica({ script: answerStream(STREAM) });
    replica.answerVersion(answerJson(`{"version":${version}}`));
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, engine: 'vllm' }] });

    const text = await (await gateway.post(CHAT, OPTIONS)).text();

    expect((await (await replica.nextRequest()).body).toString() === OPTIONS).toBe(isAsked);
    expect(text === STREAM.join('')).toBe(isAsked);
  });

  test('is asked for where the engine was found out, and again: a replica may come back with another', async () => {
    await using replica = await startFakeReplica({
      list: { models: ['m'], ownedBy: 'vllm' },
      version: '0.17.1',
      script: answerStream(STREAM),
    });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
      config: { discovery: { models_interval: '100ms' } },
    });
    expect(await (await gateway.post(CHAT, OPTIONS)).text()).toBe(STREAM.join(''));

    replica.answerVersion(answerJson({ version: '0.32.0' }));
    await replica.untilProbes(replica.probes.length + 2);

    expect(await (await gateway.post(CHAT, OPTIONS)).text()).toBe(chatChunk('x') + DONE);
  });

  test('is not waited for: a replica that never tells serves', async () => {
    await using replica = await startFakeReplica({
      list: { models: ['m'], ownedBy: 'vllm' },
      script: answerStream(STREAM),
    });
    replica.answerVersion(hang);
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
    });

    expect(await (await gateway.post(CHAT, OPTIONS)).text()).toBe(chatChunk('x') + DONE);
  });
});

describe('the stream to the client', () => {
  test('keeps its usage chunk when the client asked for it', async () => {
    const pair = await started();
    pair.replica.answer(answerStream([chatChunk('x'), usageChunk(3, 1), DONE]));

    const response = await pair.gateway.chat({ stream: true, stream_options: { include_usage: true } });

    expect(await response.text()).toBe(chatChunk('x') + usageChunk(3, 1) + DONE);
    expect(await pair.gateway.nextRecord()).toMatchObject({ prompt_tokens: 3, completion_tokens: 1 });
  });

  test('keeps events without choices that are no usage chunk', async () => {
    const filter = event({ id: 'x', choices: [], prompt_filter_results: [{ prompt_index: 0 }] });
    const pair = await started();
    pair.replica.answer(answerStream([filter, chatChunk('x'), usageChunk(3, 1), DONE]));

    const response = await pair.gateway.chat({ stream: true });

    expect(await response.text()).toBe(filter + chatChunk('x') + DONE);
  });

  test('keeps the word usage in content and tool arguments: they are text', async () => {
    const content = chatChunk('"usage":{"prompt_tokens":999},"choices":[]');
    const tools = event({
      choices: [
        { index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"usage":null}' } }] } },
      ],
    });
    const pair = await started();
    pair.replica.answer(answerStream([content, tools, usageChunk(3, 1), DONE]));

    const response = await pair.gateway.chat({ stream: true });

    expect(await response.text()).toBe(content + tools + DONE);
    expect(await pair.gateway.nextRecord()).toMatchObject({ prompt_tokens: 3 });
  });

  test('of an engine that writes usage:null into every chunk because we asked, loses it with its comma', async () => {
    const chunk = 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}\n\n';
    const pair = await started('openai');
    pair.replica.answer(answerStream([chunk, usageChunk(3, 1), DONE]));

    const response = await pair.gateway.chat({ stream: true });

    expect(await response.text()).toBe(
      `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n${DONE}`,
    );
  });

  // The same request with and without include_usage, as real engines answered it. Ids and numbers differ between
  // two runs, so that the shape is compared: the keys of each event, in order.
  test.for([
    ['llamacpp', 'llama', CHAT],
    ['vllm', 'vllm', CHAT],
  ] as const)(
    'of %s has the shape of one that was never asked for usage',
    async ([engine, directory, path]) => {
      const asked = readCapture(`${directory}/chat-stream-usage`);
      const unasked = readCapture(`${directory}/chat-stream-nousage`);
      const pair = await started(engine);
      pair.replica.answer(answerStream(asked.chunks));

      const text = await (await pair.gateway.post(path, { model: 'm', stream: true })).text();

      expect(shapesOf(text)).toEqual(shapesOf(unasked.body.toString()));
      expect(await pair.gateway.nextRecord()).toMatchObject({
        status: 200,
        stream: true,
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        cached_tokens: expect.any(Number),
      });
    },
  );

  test.for([
    ['llamacpp', 'llama'],
    ['vllm', 'vllm'],
  ] as const)('of %s that asked for usage is relayed byte for byte', async ([engine, directory]) => {
    const capture = readCapture(`${directory}/chat-stream-usage`);
    const pair = await started(engine);
    pair.replica.answer(answerStream(capture.chunks));

    const response = await pair.gateway.chat({ stream: true, stream_options: { include_usage: true } });

    expect(Buffer.from(await response.arrayBuffer()).equals(capture.body)).toBe(true);
  });
});

describe('the fingerprint of a vLLM that generates several choices', () => {
  const finishing = (index: number, more: object = {}) =>
    event({ id: 'x', choices: [{ index, delta: {}, finish_reason: 'stop' }], ...more });
  const streamOf = (fingerprint: string) =>
    answerStream([
      finishing(0) + chatChunk('b'),
      finishing(1),
      event({
        id: 'x',
        choices: [],
        usage: { prompt_tokens: 3, completion_tokens: 2 },
        system_fingerprint: fingerprint,
      }),
      DONE,
    ]);
  const ask = async (gateway: StartedGateway) => await (await gateway.chat({ stream: true, n: 2 })).text();
  const stamped = (fingerprint: string) => [
    finishing(0, { system_fingerprint: fingerprint }) + chatChunk('b'),
    finishing(1, { system_fingerprint: fingerprint }),
    DONE,
  ];

  test('is put on each finishing chunk once a connection has shown it; never that of a process before', async () => {
    await using first = await startFakeReplica({ script: streamOf('one') });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: first.url, engine: 'vllm' }],
      config: { timeouts: { upstream_keep_alive: '60s' } },
    });
    const unstamped = (fingerprint: string) =>
      [finishing(0) + chatChunk('b'), ...stamped(fingerprint).slice(1)].join('');

    expect(await ask(gateway)).toBe(unstamped('one'));
    expect(await ask(gateway)).toBe(stamped('one').join(''));

    await first.close();
    await using _second = await startFakeReplica({
      port: Number(new URL(first.url).port),
      script: streamOf('two'),
    });
    expect(await ask(gateway)).toBe(unstamped('two'));
    expect(await ask(gateway)).toBe(stamped('two').join(''));
  });
});

describe('a replica that refuses stream_options', () => {
  const refusal = answerJson(
    { error: { message: 'Unrecognized request argument supplied: stream_options', code: null } },
    { status: 400 },
  );

  test.each([
    ['small', ''],
    ['large', 'x'.repeat(100 * 1024)],
  ])('gets a %s request again with the bytes of the client, and never again with ours', async (_, user) => {
    const pair = await started();
    const { replica, gateway } = pair;
    const body = `{"model":"m","stream":true,"user":"${user}"}`;
    replica.answerOnce(refusal);
    replica.answer(answerStream([chatChunk('x'), DONE]));

    const response = await gateway.post(CHAT, body);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(chatChunk('x') + DONE);
    await (await gateway.post(CHAT, body)).text();

    const bodies = await Promise.all(replica.requests.map((request) => request.body));
    expect(bodies.map(String)).toEqual([expect.stringContaining('include_usage'), body, body]);
    const [record] = await gateway.waitForRecords(2);
    expect(record).toMatchObject({ attempts: 2, status: 200, replica: 'a' });
    expect(record?.prompt_tokens).toBeUndefined();
  });

  test('is not remembered when the repeat fails as well, and its answer to the repeat is relayed', async () => {
    const pair = await started();
    const { replica, gateway } = pair;
    replica.answerOnce(refusal);
    replica.answerOnce(answerJson('{"detail":"no such thing"}', { status: 422 }));
    replica.answer(answerStream([DONE]));

    const response = await gateway.chat({ stream: true });
    expect(response.status).toBe(422);
    expect(await response.text()).toBe('{"detail":"no such thing"}');
    await (await gateway.chat({ stream: true })).text();

    expect((await replica.requests[2]?.body)?.toString()).toContain('include_usage');
  });

  test('for another reason is relayed as it is, without a repeat', async () => {
    const pair = await started();
    pair.replica.answer(answerJson('{"error":"too long"}', { status: 400 }));

    const response = await pair.gateway.chat({ stream: true });

    expect(response.status).toBe(400);
    expect(await response.text()).toBe('{"error":"too long"}');
    expect(pair.replica.requests).toHaveLength(1);
  });

  test('when the client itself asked for usage is relayed as it is', async () => {
    const pair = await started();
    pair.replica.answer(refusal);

    const response = await pair.gateway.chat({ stream: true, stream_options: { include_usage: true } });

    expect(response.status).toBe(400);
    expect(pair.replica.requests).toHaveLength(1);
  });

  test('beyond the first 64 KiB of its answer is not understood, and relayed whole', async () => {
    const text = `${' '.repeat(70_000)}stream_options`;
    const pair = await started();
    pair.replica.answer(answerJson(text, { status: 400 }));

    const response = await pair.gateway.chat({ stream: true });

    expect(await response.text()).toBe(text);
    expect(pair.replica.requests).toHaveLength(1);
  });
});

/** The key structure of each event's data, strings and numbers left out; other lines as they are. */
function shapesOf(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('data: {') ? toShape(JSON.parse(part.slice(6))) : part));
}

function toShape(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toShape);
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.entries(value).map(([key, member]) => [key, toShape(member)]);
}
