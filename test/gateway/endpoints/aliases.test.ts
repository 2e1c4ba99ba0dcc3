import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  COMPLETION,
  chatChunk,
  DONE,
  partial,
  type Script,
} from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import type { StartGatewayOptions } from '#testkit/start-gateway.ts';
import { type Pair, startPair } from '#testkit/start-pair.ts';

const ALIASES = { 'gpt-4o': 'm', 'klein "é"': 'org/large' };
const CHAT = '/v1/chat/completions';

const start = (config: StartGatewayOptions['config'] = {}) =>
  startPair({ models: ['m', 'org/large'] }, { aliases: ALIASES, ...config });

/** What the replica gets for this body. */
async function upstream({ replica, gateway }: Pair, body: string, path = CHAT) {
  await (await gateway.post(path, body)).arrayBuffer();
  const received = await replica.nextRequest();
  const bytes = await received.body;
  expect(received.header('content-length')).toEqual([String(bytes.length)]);
  return bytes.toString();
}

describe('in a request, only the alias is replaced', () => {
  test.each([
    ['{"model":"gpt-4o","n":1.0}', '{"model":"m","n":1.0}'],
    [
      ' { "n" : 12345678901234567890 , "model" :\t"gpt-4o" }\n',
      ' { "n" : 12345678901234567890 , "model" :\t"m" }\n',
    ],
    ['{"mod\\u0065l":"gpt\\u002d4o"}', '{"mod\\u0065l":"m"}'],
    ['{"model":"klein \\"\\u00e9\\"","a":"\\/"}', '{"model":"org/large","a":"\\/"}'],
    [
      '{"model":"gpt-4o","a":{"model":"gpt-4o"},"b":["gpt-4o"]}',
      '{"model":"m","a":{"model":"gpt-4o"},"b":["gpt-4o"]}',
    ],
    [
      '{"model":"org/large","model":"gpt-4o","model":"gpt-4o"}',
      '{"model":"org/large","model":"gpt-4o","model":"m"}',
    ],
    ['{"model":"gpt-4o","model":"m"}', '{"model":"gpt-4o","model":"m"}'],
    ['{"model":"m"}', '{"model":"m"}'],
  ])('%s', async (sent, received) => {
    const started = await start();
    expect(await upstream(started, sent)).toBe(received);
  });

  test.each([
    [
      '{"stream":true,"model":"gpt-4o"}',
      '{"stream":true,"model":"m","stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream":true,"stream_options":{},"model":"gpt-4o","stream_options":null}',
      '{"stream":true,"stream_options":{"include_usage":true},"model":"m","stream_options":{"include_usage":true}}',
    ],
  ])('together with the request for usage: %s', async (sent, received) => {
    expect(await upstream(await start(), sent)).toBe(received);
  });

  test.each(['gpt-4o ', 'GPT-4o', 'constructor', '__proto__'])('%j is none', async (model) => {
    const { gateway, replica } = await start();
    expect((await gateway.post(CHAT, JSON.stringify({ model }))).status).toBe(404);
    expect(replica.requests).toEqual([]);
  });

  test('of a large body too, which a thread reads', async () => {
    const started = await start();
    const messages = `"messages":[{"role":"user","content":"${'x'.repeat(400_000)}"}]`;
    const got = await upstream(started, `{${messages},"model":"gpt-4o"}`);
    expect(got === `{${messages},"model":"m"}`).toBe(true);
    expect(await started.gateway.nextRecord()).toMatchObject({
      model: 'm',
      model_requested: 'gpt-4o',
      prompt_chars: 400_000,
    });
  });
});

describe('in an answer, the name is the alias', () => {
  test('of JSON: every other byte is the replica\u2019s, and the length is right', async () => {
    const { replica, gateway } = await start();
    const answer = '{"id":"c","choices":[{"model":"m"}], "model" : "m" ,"usage":{"prompt_tokens":3}}';
    replica.answer(answerJson(answer));

    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"gpt-4o"}'));

    const expected = answer.replace('"model" : "m"', '"model" : "gpt-4o"');
    expect(response.body.toString()).toBe(expected);
    expect(response.header('content-length')).toEqual([String(expected.length)]);
    expect(response.header('transfer-encoding')).toEqual([]);
    expect(await gateway.nextRecord()).toMatchObject({
      model: 'm',
      model_requested: 'gpt-4o',
      response_model: 'm',
      prompt_tokens: 3,
    });
  });

  test('of a large JSON answer, which is sent in chunks as it comes', async () => {
    const { replica, gateway } = await start();
    const rest = `"data":[${Array.from({ length: 60_000 }, (_, i) => i).join()}]`;
    replica.answer(answerJson(`{"model":"m",${rest}}`));

    const response = await exchangeRaw(gateway.url, postBytes('/v1/embeddings', '{"model":"gpt-4o"}'));

    expect(response.body.toString() === `{"model":"gpt-4o",${rest}}`).toBe(true);
    expect(response.header('content-length')).toEqual([]);
    expect(response.isComplete).toBe(true);
  });

  test('of a stream', async () => {
    const { replica, gateway } = await start();
    const stream = chatChunk('Hi') + chatChunk('', 'stop') + DONE;
    replica.answer(answerStream([...stream]));
    const response = await gateway.chat({ model: 'gpt-4o', stream: true });
    expect(await response.text()).toBe(stream.replaceAll('"model":"m"', '"model":"gpt-4o"'));
    expect(await gateway.nextRecord()).toMatchObject({
      stream: true,
      response_model: 'm',
      finish_reasons: ['stop'],
    });
  });

  test('whatever the engine calls the model', async () => {
    const { replica, gateway } = await start();
    replica.answer(answerJson({ model: '/models/large.gguf' }));
    expect(await (await gateway.chat({ model: 'klein "é"' })).json()).toEqual({ model: 'klein "é"' });
    expect(await gateway.nextRecord()).toMatchObject({
      model: 'org/large',
      response_model: '/models/large.gguf',
    });
  });

  test('but a compressed answer, and one that is not JSON, pass as they are', async () => {
    const { replica, gateway } = await start();
    const text = JSON.stringify(COMPLETION);
    replica.answerOnce(answerJson(text, { fields: ['Content-Encoding', 'x-own'] }));
    const type: Script = async ({ request, head, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/plain']);
      end(text);
    };
    replica.answer(type);
    for (let i = 0; i < 2; i++) {
      const { body } = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"gpt-4o"}'));
      expect(body.toString()).toBe(text);
    }
  });

  test('and nothing is replaced if the client wrote the model\u2019s own name', async () => {
    const { replica, gateway } = await start();
    const response = await gateway.chat({ model: 'm' });
    expect(await response.json()).toEqual(COMPLETION);
    expect((await gateway.nextRecord()).model_requested).toBeUndefined();
    expect(JSON.parse(String(await (await replica.nextRequest()).body))).toMatchObject({ model: 'm' });
  });

  test('a JSON answer that breaks off is cut for the client too', async () => {
    const { replica, gateway } = await start();
    replica.answer(partial('application/json', ['{"model":"m","a":'], 'reset', ['Content-Length', '100']));
    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"gpt-4o"}'));
    expect(response).toMatchObject({ status: 200, isComplete: false });
    expect(response.body.toString()).toBe('{"model":"gpt-4o","a":');
    expect(await gateway.nextRecord()).toMatchObject({
      status: 200,
      truncated: true,
      error_type: 'upstream_failed',
    });
  });
});

test('an alias goes before a model of the same name', async () => {
  const started = await start({ aliases: { 'org/large': 'm' } });
  expect(await upstream(started, '{"model":"org/large"}')).toBe('{"model":"m"}');
});

test('the prefix hashes are those of the model that it stands for', async () => {
  const { gateway } = await start({ prefix_hash: { block_chars: 4 } });
  const messages = [{ role: 'user', content: 'What is this?' }];
  for (const model of ['gpt-4o', 'm']) await (await gateway.chat({ model, messages })).arrayBuffer();
  const [aliased, plain] = await gateway.waitForRecords(2);
  expect(aliased?.prefix_hashes?.length).toBeGreaterThan(1);
  expect(aliased?.prefix_hashes).toEqual(plain?.prefix_hashes);
});

test('a client may use the names in its list, as it writes them', async () => {
  const digest = (key: string) => createHash('sha256').update(key).digest('hex');
  const { gateway } = await start({
    models_listing: 'union',
    clients: [
      { name: 'new', key_sha256: digest('new'), models: ['gpt-4o', 'gone'] },
      { name: 'old', key_sha256: digest('old'), models: ['m'] },
    ],
  });
  const statusOf = async (key: string, model: string) =>
    (await gateway.chat({ model }, { headers: { Authorization: `Bearer ${key}` } })).status;
  expect(await statusOf('new', 'gpt-4o')).toBe(200);
  expect(await statusOf('new', 'm')).toBe(404);
  expect(await statusOf('old', 'gpt-4o')).toBe(404);
  expect(await statusOf('old', 'm')).toBe(200);
  const listed = async (key: string) => {
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { Authorization: `Bearer ${key}` } });
    return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
  };
  expect(await listed('new')).toEqual(['gpt-4o']);
  expect(await listed('old')).toEqual(['m']);
});

test('with models_listing: union, aliases of models that are served are listed behind them', async () => {
  const { gateway } = await start({
    models_listing: 'union',
    aliases: { 'gpt-4o': 'm', nobody: 'gone', 'org/large': 'm' },
  });
  const response = await fetch(`${gateway.url}/v1/models`);
  const { data } = (await response.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(['m', 'org/large', 'gpt-4o']);
  expect((await fetch(`${gateway.url}/v1/models/gpt-4o`)).status).toBe(200);
  expect((await fetch(`${gateway.url}/v1/models/nobody`)).status).toBe(404);
});

test('the metrics count the model that it stands for, and a reload changes the aliases', async () => {
  const { gateway } = await start();
  await (await gateway.chat({ model: 'gpt-4o' })).arrayBuffer();
  await gateway.nextRecord();
  const metrics = await (await gateway.admin('/metrics')).text();
  expect(metrics).toContain('gen_ai_request_model="m"');
  expect(metrics).not.toContain('gpt-4o');

  gateway.writeConfig({ config: { aliases: { mini: 'm' } } });
  expect(await (await gateway.reload()).json()).toMatchObject({
    changed: expect.arrayContaining(['aliases.mini']),
  });
  expect((await gateway.chat({ model: 'gpt-4o' })).status).toBe(404);
  expect((await gateway.chat({ model: 'mini' })).status).toBe(200);
});
