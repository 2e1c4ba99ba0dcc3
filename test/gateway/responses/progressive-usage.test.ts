import { expect, test } from 'vitest';
import {
  chatChunk,
  DONE,
  event,
  type FakeReplica,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const CHAT = '/v1/chat/completions';
const PROMPT_TOKENS = 311;

/** An event of vLLM with the tokens of its choice so far. */
const running = (index: number, completion_tokens: number) =>
  event({
    choices: [{ index, delta: { content: 'x' } }],
    usage: {
      prompt_tokens: PROMPT_TOKENS,
      total_tokens: PROMPT_TOKENS + completion_tokens,
      completion_tokens,
    },
  });

const start = async (
  replica: FakeReplica,
  config: StartGatewayOptions['config'] = { progressive_usage: true },
  engine = 'vllm',
) => startGateway({ replicas: [{ name: 'a', url: replica.url, engine }], config });

test.for([
  ['no stream_options', '', '{"include_usage":true,"continuous_usage_stats":true}'],
  ['null', ',"stream_options":null', '{"include_usage":true,"continuous_usage_stats":true}'],
  [
    'both refused by the client',
    ',"stream_options":{"continuous_usage_stats":false,"include_usage":false}',
    '{"continuous_usage_stats":true,"include_usage":true}',
  ],
  [
    'usage alone',
    ',"stream_options":{"include_usage":true}',
    '{"include_usage":true,"continuous_usage_stats":true}',
  ],
  [
    'both asked for by the client',
    ',"stream_options":{"include_usage":true,"continuous_usage_stats":true}',
    '{"include_usage":true,"continuous_usage_stats":true}',
  ],
] as const)(
  'vLLM is asked for running figures, and the client gets its own stream: %s',
  async ([, options, sent]) => {
    await using replica = await startFakeReplica();
    await using gateway = await start(replica);
    const isAsked = options.includes('"include_usage":true');
    const isRunning = options.includes('"continuous_usage_stats":true');
    replica.answer(async ({ request, head, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      end(running(0, 1) + running(0, 2) + usageChunk(PROMPT_TOKENS, 2) + DONE);
    });
    const text = await (await gateway.post(CHAT, `{"model":"m","stream":true${options}}`)).text();
    const received = JSON.parse((await (await replica.nextRequest()).body).toString()) as object;
    expect(received).toEqual({ model: 'm', stream: true, stream_options: JSON.parse(sent) });
    const plain = event({ choices: [{ index: 0, delta: { content: 'x' } }] });
    const events = isRunning ? running(0, 1) + running(0, 2) : plain + plain;
    expect(text).toBe(events + (isAsked ? usageChunk(PROMPT_TOKENS, 2) : '') + DONE);
    expect(await gateway.nextRecord()).toMatchObject({
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens: 2,
      usage_source: 'final',
    });
  },
);

test('a stream that its client leaves has the tokens of its last event, of all choices', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await start(replica);
  replica.answer(async ({ request, head, write }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(running(0, 1) + running(1, 1) + running(0, 2) + running(1, 3));
  });
  const leaving = new AbortController();
  const response = await gateway.post(CHAT, { model: 'm', stream: true, n: 2 }, { signal: leaving.signal });
  await response.body?.getReader().read();
  leaving.abort();
  expect(await gateway.nextRecord()).toMatchObject({
    error_type: 'client_closed',
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: 5,
    usage_source: 'progressive',
  });
});

/** What llama.cpp tells with an event: so many tokens of the prompt from its cache, processed, and predicted. */
const timings = (predicted_n: number) => ({ cache_n: 300, prompt_n: 11, predicted_n, predicted_ms: 4.5 });
const timed = (index: number, predicted_n: number) =>
  event({ choices: [{ index, delta: { content: 'x' } }], timings: timings(predicted_n) });

test.for([
  ['no stream_options', '', { stream_options: { include_usage: true }, timings_per_token: true }],
  [
    'usage asked for',
    ',"stream_options":{"include_usage":true}',
    { stream_options: { include_usage: true }, timings_per_token: true },
  ],
  [
    'timings asked for',
    ',"timings_per_token":true',
    { stream_options: { include_usage: true }, timings_per_token: true },
  ],
  [
    'timings refused',
    ',"timings_per_token":false',
    { stream_options: { include_usage: true }, timings_per_token: false },
  ],
] as const)(
  'llama.cpp is asked for timings with each event, and the client gets its own stream: %s',
  async ([title, options, sent]) => {
    await using replica = await startFakeReplica();
    await using gateway = await start(replica, { progressive_usage: true }, 'llamacpp');
    const finishing = (rest: object) =>
      event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...rest });
    const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: 2 };
    const last = event({ choices: [], usage, timings: timings(2) });
    const isRunning = sent.timings_per_token;
    const plain = event({ choices: [{ index: 0, delta: { content: 'x' } }] });
    const events = isRunning ? timed(0, 1) + timed(0, 2) : plain + plain;
    replica.answer(async ({ request, head, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      end(events + finishing({}) + last + DONE);
    });
    const text = await (await gateway.post(CHAT, `{"model":"m","stream":true${options}}`)).text();
    const received = JSON.parse((await (await replica.nextRequest()).body).toString()) as object;
    expect(received).toEqual({ model: 'm', stream: true, ...sent });
    const isAsked = title === 'usage asked for';
    const end = isAsked ? finishing({}) + last : finishing({ timings: timings(2) });
    expect(text).toBe((title === 'timings asked for' ? events : plain + plain) + end + DONE);
    expect(await gateway.nextRecord()).toMatchObject({
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens: 2,
      usage_source: 'final',
    });
  },
);

test('a stream of llama.cpp that its client leaves has the tokens of its last event, of all choices', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await start(replica, { progressive_usage: true }, 'llamacpp');
  replica.answer(async ({ request, head, write }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(timed(0, 1) + timed(1, 1) + timed(0, 2) + timed(1, 3));
  });
  const leaving = new AbortController();
  const response = await gateway.post(CHAT, { model: 'm', stream: true, n: 2 }, { signal: leaving.signal });
  await response.body?.getReader().read();
  leaving.abort();
  expect(await gateway.nextRecord()).toMatchObject({
    error_type: 'client_closed',
    prompt_tokens: PROMPT_TOKENS,
    cached_tokens: 300,
    completion_tokens: 5,
    usage_source: 'progressive',
  });
});

test.for([
  ['vllm', {}],
  ['llamacpp', {}],
  ['sglang', { progressive_usage: true }],
] as const)(
  'a stream that its client leaves has none without the key, or at another engine: %s',
  async ([engine, config]) => {
    await using replica = await startFakeReplica();
    await using gateway = await start(replica, config, engine);
    replica.answer(async ({ request, head, write }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      await write(chatChunk('x'));
    });
    const leaving = new AbortController();
    const response = await gateway.post(CHAT, { model: 'm', stream: true }, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    const body = JSON.parse((await (await replica.nextRequest()).body).toString()) as object;
    expect(body).toHaveProperty('stream_options', { include_usage: true });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ error_type: 'client_closed', usage_source: 'absent' });
    expect(record).not.toHaveProperty('completion_tokens');
  },
);
