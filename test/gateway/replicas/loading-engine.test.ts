import { describe, expect, test } from 'vitest';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

/** As llama.cpp sends it on every path, for as long as it loads its model. */
const LOADING = '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}';
const loading = answerJson(LOADING, { status: 503, fields: ['Server', 'llama.cpp'] });
const CHAT = '/v1/chat/completions';

const llamacpp = (replica: FakeReplica) => ({ name: replica.name, url: replica.url, engine: 'llamacpp' });

/** The answer in chunks, byte by byte. */
const loadingInPieces: Script = async ({ request, head, write, end }) => {
  await request.body;
  await head(503, ['Content-Type', 'application/json; charset=utf-8']);
  for (const character of LOADING) await write(character);
  end();
};

describe('an engine that is loading its model counts as refusing', () => {
  test.for([
    ['a plain request', loading, {}],
    ['a stream', loading, { stream: true }],
    ['a stream that asks for usage', loading, { stream: true, stream_options: { include_usage: true } }],
    ['an answer in pieces', loadingInPieces, {}],
    ['a large request', loading, { messages: [{ role: 'user', content: 'x'.repeat(100 * 1024) }] }],
  ] as const)('%s goes to another replica', async ([, script, members]) => {
    await using a = await startFakeReplica({ name: 'a', script });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [llamacpp(a), llamacpp(b)] });

    const response = await gateway.chat(members);

    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(COMPLETION);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'b', attempts: 2 });
    const bodies = await Promise.all([a, b].map(async (replica) => (await replica.nextRequest()).body));
    expect(JSON.parse(String(bodies[0]))).toEqual(JSON.parse(String(bodies[1])));
  });

  test('its turns are skipped while it loads, and given again afterwards', async () => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    await using b = await startFakeReplica({ name: 'b' });
    await using c = await startFakeReplica({ name: 'c' });
    await using gateway = await startGateway({ replicas: [llamacpp(a), llamacpp(b), llamacpp(c)] });

    expect(await turnsOf(gateway, 4)).toEqual(['b', 'c', 'b', 'c']);
    a.answer(answerJson(COMPLETION));
    expect(await turnsOf(gateway, 3)).toEqual(['a', 'b', 'c']);
  });

  test('the engine may be known by its list of models', async () => {
    const list = { models: ['m'], ownedBy: 'llamacpp' };
    await using a = await startFakeReplica({ name: 'a', list, script: loading });
    await using b = await startFakeReplica({ name: 'b', list });
    const replicas = [a, b].map(({ name, url }) => ({ name, url, models: 'auto', engine: 'auto' }) as const);
    await using gateway = await startGateway({ replicas });

    expect((await gateway.chat()).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'b', attempts: 2 });
  });

  test('GET /v1/models is answered by another replica', async () => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    await using b = await startFakeReplica({ name: 'b', script: answerJson({ data: [] }) });
    await using gateway = await startGateway({ replicas: [llamacpp(a), llamacpp(b)] });

    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200);
    expect(a.requests).toHaveLength(1);
  });

  test('one whose model is loading says so to the log, and not as an error of a client', async () => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [llamacpp(a), llamacpp(b)] });

    await gateway.chat();

    const line = await gateway.untilLogged('attempt failed');
    expect(JSON.parse(line)).toMatchObject({ replica: 'a' });
  });
});

describe('when no other replica takes the request, the answer of the one that loads is relayed verbatim', () => {
  /** Sends one request, and expects the loading replica's own answer. */
  async function expectItsAnswer(replicas: Parameters<typeof startGateway>[0]['replicas'], record: object) {
    await using gateway = await startGateway({ replicas });

    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"m"}'));

    expect(response.status).toBe(503);
    expect(response.body.toString()).toBe(LOADING);
    expect(response.header('content-type')).toEqual(['application/json']);
    expect(response.header('server')).toEqual(['llama.cpp']);
    expect(response.header('x-request-id')).toHaveLength(1);
    expect(await gateway.nextRecord()).toMatchObject({ status: 503, ...record });
    expect(await gateway.replicas()).toMatchObject(replicas.map(() => ({ inflight: 0 })));
  }

  test('because there is no other', async () => {
    await using a = await startFakeReplica({ script: loading });
    await expectItsAnswer([llamacpp(a)], { replica: 'a', attempts: 1 });
  });

  test('because all load', async () => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    await using b = await startFakeReplica({ name: 'b', script: loading });
    await expectItsAnswer([llamacpp(a), llamacpp(b)], { attempts: 2 });
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
  });

  test.for(['first', 'last'])('because the other refuses the connection, tried %s', async (place) => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    const b = { name: 'b', url: refusedUrlBeside(a), engine: 'llamacpp' };
    const replicas = place === 'first' ? [b, llamacpp(a)] : [llamacpp(a), b];
    await expectItsAnswer(replicas, { replica: 'a', attempts: 2 });
  });

  test('because the other is drained', async () => {
    await using a = await startFakeReplica({ name: 'a', script: loading });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [llamacpp(a), llamacpp(b)] });
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });

    const response = await gateway.chat();

    expect(response.status).toBe(503);
    expect(await response.text()).toBe(LOADING);
    expect(b.requests).toEqual([]);
  });
});

describe('relayed at once, without another replica being asked', () => {
  const others: readonly (readonly [name: string, engine: string, status: number, body: string])[] = [
    ...(['openai', 'vllm', 'sglang', 'tgi', 'ollama'] as const).map(
      (engine) => [`the same answer of ${engine}`, engine, 503, LOADING] as const,
    ),
    ['another message', 'llamacpp', 503, LOADING.replace('Loading model', 'Server is busy')],
    ['another type', 'llamacpp', 503, LOADING.replace('unavailable_error', 'server_error')],
    ['another status', 'llamacpp', 500, LOADING],
    ['no JSON', 'llamacpp', 503, 'Loading model'],
    ['no body', 'llamacpp', 503, ''],
    ['the words elsewhere', 'llamacpp', 503, JSON.stringify({ error: 'x', note: LOADING })],
    ['a large body', 'llamacpp', 503, JSON.stringify({ error: { message: 'x'.repeat(200_000) } })],
  ];

  test.for(others)('%s (%s, %i)', async ([, engine, status, body]) => {
    await using a = await startFakeReplica({ name: 'a', script: answerJson(body, { status }) });
    await using b = await startFakeReplica({ name: 'b' });
    const replicas = [a, b].map(({ name, url }) => ({ name, url, engine }));
    await using gateway = await startGateway({ replicas });

    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"m"}'));

    expect(response.status).toBe(status);
    expect(response.body.toString()).toBe(body);
    expect(await gateway.nextRecord()).toMatchObject({ status, replica: 'a', attempts: 1 });
    expect(b.requests).toEqual([]);
  });
});
