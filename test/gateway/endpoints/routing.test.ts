import { describe, expect, test } from 'vitest';
import { answerJson, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const NOT_FOUND = {
  error: {
    message: expect.any(String),
    type: 'invalid_request_error',
    param: null,
    code: 'not_found',
  },
};

describe('what is no proxied endpoint', () => {
  const unknownTargets = [
    'GET /',
    'GET /v1',
    'POST /v1/responses',
    'GET /v1/chat/completions',
    'PUT /v1/chat/completions',
    'DELETE /v1/completions',
    'PATCH /v1/embeddings',
    'POST /v1/models',
    'GET /v1/models/m',
    'POST /healthz',
    'GET /healthz/',
    'GET /metrics',
    'GET /admin/replicas',
    'POST //v1/chat/completions',
    'POST /v1//chat/completions',
    'POST /v1/chat/completions/',
    'POST /V1/chat/completions',
    'POST /v1/%63hat/completions',
    'POST /v1/%2e%2e/v1/chat/completions',
    'POST /v1/../v1/chat/completions',
    'POST /./v1/chat/completions',
    'POST /v1/chat/completions%3Fx',
    'POST /v1/chat/completions;x',
    'POST /v1/chat/completions#x',
    'POST http://gateway/v1/chat/completions',
    'GET http://gateway/v1/models',
    'GET http://127.0.0.1:9/healthz',
    'OPTIONS *',
    'OPTIONS /v1/chat/completions',
    'TRACE /v1/chat/completions',
    'CONNECT gateway:443',
  ];

  test.for(unknownTargets)('%s is a 404 of the usual shape that reaches no replica', async (target) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      `${target} HTTP/1.1\r\nHost: gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    );

    expect(response.status).toBe(404);
    expect(response.header('content-type')).toEqual(['application/json']);
    expect(JSON.parse(response.body.toString())).toEqual(NOT_FOUND);
    expect(replica.requests).toEqual([]);
    await gateway.close();
    expect(gateway.records).toEqual([]);
  });

  test('says what was meant: the method with Allow, the near path, the model that was asked for', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const ask = async (method: string, path: string, body?: string) => {
      const response = await fetch(gateway.url + path, body === undefined ? { method } : { method, body });
      const { error } = (await response.json()) as { error: { message: string } };
      return [response.status, error.message, response.headers.get('allow')];
    };
    expect(await ask('GET', '/v1/chat/completions?x=1')).toEqual([
      404,
      '`/v1/chat/completions` does not take `GET`, but POST.',
      'POST',
    ]);
    expect(await ask('POST', '/chat/completions', '{"model":"m"}')).toEqual([
      404,
      'There is no path `/chat/completions` on this gateway. Did you mean POST /v1/chat/completions?',
      null,
    ]);
    const model = `gpt\u202e\n${'x'.repeat(500)}`;
    expect(await ask('POST', '/v1/chat/completions', JSON.stringify({ model }))).toEqual([
      404,
      `No replica serves the model \`gpt\ufffd\ufffd${'x'.repeat(123)}…\`.`,
      null,
    ]);
    expect(replica.requests).toEqual([]);
  });

  test('HEAD is no GET: a 404 without a body', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    expect((await fetch(`${gateway.url}/v1/models`, { method: 'HEAD' })).status).toBe(404);
    expect((await fetch(`${gateway.url}/healthz`, { method: 'HEAD' })).status).toBe(404);
    expect(replica.requests).toEqual([]);
  });

  test('an upload to an unknown path is answered without waiting for its end', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      'POST /v1/files HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000000\r\n\r\nonly the beginning',
    );

    expect(response.status).toBe(404);
  });

  test('an upgrade is not offered: the request is answered as the plain one it also is', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      'GET /v1/models HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );

    expect(response.status).toBe(200);
    const received = await replica.nextRequest();
    expect(received.header('upgrade')).toEqual([]);
  });
});

describe('matching', () => {
  test('the query is ignored in matching and relayed as it is', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const query = '?api-version=2024-10-21&x=%2F%20+a&x=2&&=';
    await exchangeRaw(
      gateway.url,
      `GET /v1/models${query} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n`,
    );

    expect((await replica.nextRequest()).url).toBe(`/v1/models${query}`);
  });

  test("the path of a replica's url is put in front", async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: `${replica.url}/engine/one/` }],
    });

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    expect((await replica.nextRequest()).url).toBe('/engine/one/v1/chat/completions');
  });

  test.for(['/v1/chat/completions', '/v1/completions', '/v1/embeddings'])(
    'POST %s is forwarded and recorded',
    async (path) => {
      await using replica = await startFakeReplica();
      await using gateway = await startGateway({ replicas: [replica] });

      const response = await gateway.post(path, { model: 'm', input: 'x', prompt: 'x', messages: [] });
      await response.text();

      const received = await replica.nextRequest();
      expect(received.method).toBe('POST');
      expect(received.url).toBe(path);
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ endpoint: path, status: 200, model: 'm', replica: 'a', attempts: 1 });
    },
  );
});

describe('X-Request-Id', () => {
  test.for([
    ['a relayed answer', 'POST /v1/chat/completions', '{"model":"m"}', 200],
    ['an answer of ours', 'POST /v1/chat/completions', '{', 400],
    ['a model that nobody serves', 'POST /v1/completions', '{"model":"x"}', 404],
    ['the model list', 'GET /v1/models', '', 200],
    ['an unknown path under /v1', 'POST /v1/responses', '{}', 404],
  ] as const)('is a UUID on %s', async ([, target, body, status]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      `${target} HTTP/1.1\r\nHost: gateway\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );

    expect(response.status).toBe(status);
    expect(response.header('x-request-id')).toEqual([expect.stringMatching(UUID)]);
  });

  test('is the same for the client, the replica and the record', async () => {
    await using replica = await startFakeReplica({
      script: answerJson({}, { fields: ['X-Request-Id', 'the-replicas-own'] }),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.chat({}, { headers: { 'X-Request-Id': 'the-clients-own' } });

    const record = await gateway.nextRecord();
    const received = await replica.nextRequest();
    expect(response.headers.get('x-request-id')).toBe(record.request_id);
    expect(received.header('x-request-id')).toEqual([record.request_id]);
    expect(record.client_request_id).toBe('the-clients-own');
  });
});

describe('GET /healthz', () => {
  test('is answered by the gateway with the text ok, whatever the replicas do', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: refusedUrlBeside(replica) }] });

    for (const path of ['/healthz', '/healthz?verbose=1']) {
      const response = await fetch(gateway.url + path);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('ok');
    }
    expect(replica.requests).toEqual([]);
  });
});

describe('GET /v1/models', () => {
  const list = { object: 'list', data: [{ id: 'm', object: 'model', created: 1, owned_by: 'vllm' }] };

  test('is answered by the next replica in turn', async () => {
    await using a = await startFakeReplica({ name: 'a', script: answerJson({ from: 'a' }) });
    await using b = await startFakeReplica({ name: 'b', script: answerJson({ from: 'b' }) });
    await using gateway = await startGateway({ replicas: [a, b] });

    const answers: unknown[] = [];
    for (let i = 0; i < 4; i++) answers.push(await (await fetch(`${gateway.url}/v1/models`)).json());

    expect(answers).toEqual([{ from: 'a' }, { from: 'b' }, { from: 'a' }, { from: 'b' }]);
  });

  test('takes no turn from the requests for a model', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, b] });

    for (let i = 0; i < 4; i++) {
      await (await gateway.chat()).text();
      await (await fetch(`${gateway.url}/v1/models`)).text();
    }

    const records = await gateway.waitForRecords(4);
    expect(records.map(({ replica }) => replica)).toEqual(['a', 'b', 'a', 'b']);
  });

  test('carries X-Request-Id and a traceparent whose span is not exported, and leaves no record', async () => {
    await using replica = await startFakeReplica({ script: answerJson(list) });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await fetch(`${gateway.url}/v1/models`);

    expect(await response.json()).toEqual(list);
    const received = await replica.nextRequest();
    expect(received.header('x-request-id')).toEqual([response.headers.get('x-request-id')]);
    expect(received.header('traceparent')).toEqual([
      expect.stringMatching(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/),
    ]);
    expect(await gateway.stats()).toMatchObject({ recorded: 0, queued: 0, exported: 0 });
    await gateway.close();
    expect(gateway.records).toEqual([]);
  });

  test('skips a replica that refuses the connection', async () => {
    await using replica = await startFakeReplica({ name: 'b', script: answerJson(list) });
    const refusing = { name: 'a', url: refusedUrlBeside(replica) };
    await using gateway = await startGateway({ replicas: [refusing, replica] });

    for (let i = 0; i < 3; i++) expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200);
  });

  test('is a 502 when no replica can be reached', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: refusedUrlBeside(replica) }] });

    const response = await fetch(`${gateway.url}/v1/models`);

    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({
      error: { code: 'no_replica_reachable', type: 'server_error' },
    });
    expect(response.headers.get('x-request-id')).toMatch(UUID);
  });

  test('is a 503 with Retry-After when every replica is drained', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const response = await fetch(`${gateway.url}/v1/models`);

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({
      error: { code: 'all_replicas_drained', type: 'server_error' },
    });
    expect(replica.requests).toEqual([]);
  });
});
