import { describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  COMPLETION,
  chatChunk,
  DONE,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { FORM_TYPE, formOf } from '#testkit/reading/form.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

const CHAT = '/v1/chat/completions';
const RETRY = { retry: { statuses: [503], attempts: 1 } };
const ALL_STATUSES = [429, 500, 501, 502, 503, 504];

/** A refusal that names who sent it, and has what a client would look at. */
const refusal = (name: string) => `{ "error" : {"message":"busy \\u00e9","from":"${name}"} }`;
const refuse = (name: string, status = 503) =>
  answerJson(refusal(name), { status, fields: ['Retry-After', '7', 'X-From', name] });

/** Sends the head of a refusal and the beginning of its body. */
const refuseHalf: Script = async ({ request, head, write }) => {
  await request.body;
  await head(503, ['Content-Type', 'text/plain', 'Content-Length', '100']);
  await write('half');
};

describe('with `retry`, another replica is asked after a status that it names', () => {
  test.for(ALL_STATUSES)('%i', async (status) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    a.answer(refuse('a', status));
    await using gateway = await startGateway({
      replicas,
      config: { retry: { statuses: ALL_STATUSES } },
    });

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(COMPLETION);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'b', attempts: 2 });
    const bodies = await Promise.all([a, b].map(async (replica) => (await replica.nextRequest()).body));
    expect(bodies[0]).toEqual(bodies[1]);
    const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
    expect(records).toMatchObject([
      { failed_attempts: [{ replica: 'a', failure: 'status_retried', status }] },
    ]);
  });

  test('a stream is the one of the other replica, byte for byte', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const stream = chatChunk('Hi') + chatChunk('', 'stop') + DONE;
    replicas[0].answer(refuse('a'));
    replicas[1].answer(answerStream([stream]));
    await using gateway = await startGateway({ replicas, config: RETRY });

    const response = await gateway.chat({ stream: true });

    expect(await response.text()).toBe(stream);
    expect(await gateway.nextRecord()).toMatchObject({ stream: true, replica: 'b', attempts: 2 });
  });

  test('a large body is sent again as it was', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    replicas[0].answer(refuse('a'));
    await using gateway = await startGateway({ replicas, config: RETRY });
    const content = 'x'.repeat(3 * 1024 * 1024);

    expect((await gateway.chat({ messages: [{ role: 'user', content }] })).status).toBe(200);

    const [first, second] = await Promise.all(
      replicas.map(async (replica) => (await replica.nextRequest()).body),
    );
    expect(second?.length).toBeGreaterThan(content.length);
    expect(first?.equals(second ?? Buffer.alloc(0))).toBe(true);
    expect(await gateway.nextRecord()).toMatchObject({ prompt_chars: content.length, attempts: 2 });
  });

  test('GET /v1/models is answered by another replica', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    replicas[0].answer(refuse('a'));
    replicas[1].answer(answerJson({ data: [] }));
    await using gateway = await startGateway({ replicas, config: RETRY });

    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200);
    expect(replicas.map(({ requests }) => requests.length)).toEqual([1, 1]);
  });

  test('the turns of the others stay even', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    replicas[0].answer(refuse('a'));
    await using gateway = await startGateway({ replicas, config: RETRY });

    expect(await turnsOf(gateway, 4)).toEqual(['b', 'c', 'b', 'c']);
  });

  test('the request waits for a replica below its max_inflight', async () => {
    const gate = createGate();
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    a.answer(refuse('a'));
    b.answerOnce(gate.script);
    await using gateway = await startGateway({
      replicas: [a, { name: b.name, url: b.url, max_inflight: 1 }],
      config: RETRY,
    });
    const first = gateway.chat();
    await b.untilRequests(1);

    const second = gateway.chat();
    await a.untilRequests(2);
    gate.open();

    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    const records = await gateway.waitForRecords(2);
    expect(records).toMatchObject([
      { replica: 'b', attempts: 2 },
      { replica: 'b', attempts: 2 },
    ]);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }, { inflight: 0 }]);
  });
});

describe('when no other replica takes the request, the client gets the last answer, byte for byte', () => {
  const expectAnswerOf = async (
    name: string,
    replicas: Parameters<typeof startGateway>[0]['replicas'],
    config: object,
    record: object,
  ) => {
    await using gateway = await startGateway({ replicas, config: { ...config } });
    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"m"}'));
    expect(response.status).toBe(503);
    expect(response.body.toString()).toBe(refusal(name));
    expect(response.header('content-length')).toEqual([String(refusal(name).length)]);
    expect(response.header('retry-after')).toEqual(['7']);
    expect(response.header('x-from')).toEqual([name]);
    expect(response.header('x-request-id')).toHaveLength(1);
    expect(await gateway.nextRecord()).toMatchObject({ status: 503, replica: name, ...record });
    expect(await gateway.replicas()).toMatchObject(replicas.map(() => ({ inflight: 0 })));
  };

  test('because there is no other', async () => {
    await using a = await startFakeReplica({ script: refuse('a') });
    await expectAnswerOf('a', [a], RETRY, { attempts: 1 });
  });

  test('because all answered so', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    for (const replica of replicas) replica.answer(refuse(replica.name));
    await expectAnswerOf('b', replicas, { retry: { statuses: [503], attempts: 5 } }, { attempts: 2 });
  });

  test('because `attempts` are used up', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    for (const replica of replicas.slice(0, 3)) replica.answer(refuse(replica.name));
    await expectAnswerOf('b', replicas, RETRY, { attempts: 2 });
    expect(replicas.map(({ requests }) => requests.length)).toEqual([1, 1, 0, 0]);
  });

  test('because the other refuses the connection', async () => {
    await using a = await startFakeReplica({ script: refuse('a') });
    await expectAnswerOf('a', [a, { name: 'b', url: refusedUrlBeside(a) }], RETRY, { attempts: 2 });
  });

  test('because the other is drained while the first one answers', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const gate = createGate(refuse('a'));
    replicas[0].answer(gate.script);
    await using gateway = await startGateway({ replicas, config: RETRY });
    const chat = gateway.chat();
    await replicas[0].untilRequests(1);
    expect((await gateway.admin('/admin/replicas/b/drain', { method: 'POST' })).status).toBe(200);
    gate.open();

    expect(await (await chat).text()).toBe(refusal('a'));
    expect(await gateway.nextRecord()).toMatchObject({ status: 503, replica: 'a', attempts: 1 });
    expect(replicas[1].requests).toEqual([]);
  });

  test('also if it is drained itself: the same replica is not asked twice', async () => {
    await using a = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [a], config: RETRY });
    a.answer(async (exchange) => {
      await gateway.admin('/admin/replicas/a/drain?force=true', { method: 'POST' });
      await refuse('a')(exchange);
    });

    expect(await (await gateway.chat()).text()).toBe(refusal('a'));
    expect(a.requests).toHaveLength(1);
  });

  test('an answer that breaks off is cut for the client too', async () => {
    await using a = await startFakeReplica({
      script: async (exchange) => {
        await refuseHalf(exchange);
        exchange.reset();
      },
    });
    await using gateway = await startGateway({ replicas: [a], config: RETRY });

    const response = await exchangeRaw(gateway.url, postBytes(CHAT, '{"model":"m"}'));

    expect(response).toMatchObject({ status: 503, isComplete: false });
    expect(response.body.toString()).toBe('half');
    const record = { status: 503, truncated: true, error_type: 'upstream_failed', attempts: 1 };
    expect(await gateway.nextRecord()).toMatchObject(record);
  });
});

test('a replica that was drained while it refused is not asked again, although it is undrained meanwhile', async () => {
  const [refusing, busy] = [createGate(refuse('a')), createGate()];
  await using a = await startFakeReplica({ name: 'a', script: refusing.script });
  await using b = await startFakeReplica({ name: 'b', script: busy.script });
  await using gateway = await startGateway({
    replicas: [a, { name: 'b', url: b.url, models: ['m', 'of-b'], max_inflight: 1 }],
    config: RETRY,
  });
  const admin = async (path: string, method = 'GET') =>
    (await gateway.admin(`/admin/replicas${path}`, { method })).json();
  const atB = gateway.chat({ model: 'of-b' });
  await b.untilRequests(1);
  const response = gateway.chat();
  await a.untilRequests(1);
  await admin('/a/drain', 'POST');
  refusing.open();
  await expect.poll(() => admin('')).toMatchObject({ waiting: 1 });

  await admin('/a/undrain', 'POST');
  busy.open();

  expect([(await atB).status, (await response).status]).toEqual([200, 200]);
  expect([a.requests.length, b.requests.length]).toEqual([1, 2]);
});

test('an answer that breaks off makes way for another replica', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  replicas[0].answer(async (exchange) => {
    await refuseHalf(exchange);
    exchange.reset();
  });
  await using gateway = await startGateway({ replicas, config: RETRY });

  expect((await gateway.chat()).status).toBe(200);
  expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'b', attempts: 2 });
});

test('a client that leaves in the middle of a refusal ends everything', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  replicas[0].answer(refuseHalf);
  await using gateway = await startGateway({ replicas, config: RETRY });
  using client = await RawConnection.open(gateway.url);
  client.write(postBytes(CHAT, '{"model":"m"}'));
  const received = await replicas[0].nextRequest();

  client[Symbol.dispose]();

  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 499, error_type: 'client_closed', attempts: 1 });
  expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }, { inflight: 0 }]);
  expect(replicas[1].requests).toEqual([]);
});

describe('relayed at once, without another replica being asked', () => {
  const expectFirst = async (
    status: number,
    config: Parameters<typeof startGateway>[0]['config'],
    body = refusal('a'),
  ) => {
    await using replicas = await startFakeReplicas('a', 'b');
    replicas[0].answer(answerJson(body, { status }));
    await using gateway = await startGateway({ replicas, config: config ?? {} });
    const response = await gateway.chat();
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(body);
    expect(await gateway.nextRecord()).toMatchObject({ status, replica: 'a', attempts: 1 });
    expect(replicas[1].requests).toEqual([]);
  };

  test('every status without `retry`', () => expectFirst(503, {}));
  test('every status with an empty list', () => expectFirst(503, { retry: { statuses: [] } }));
  test('a status that is not in the list', () => expectFirst(429, RETRY));
  test('a status of 400', () => expectFirst(400, RETRY));
  test('a large answer', () => expectFirst(503, RETRY, `{"error":"${'x'.repeat(200_000)}"}`));

  test.each(['a form', 'a request of `pass`'])(
    '%s whose body went on as it came: it is gone',
    async (kind) => {
      await using replicas = await startFakeReplicas('a', 'b');
      replicas[0].answer(refuse('a'));
      const config = { ...RETRY, endpoints: ['audio/transcriptions'], pass: ['OPTIONS /v1/files'] };
      await using gateway = await startGateway({ replicas, config });
      const file = { name: 'file', value: Buffer.alloc(300 * 1024), filename: 'a.wav' };
      const form = formOf([{ name: 'model', value: 'm' }, file]);
      const [path, method] =
        kind === 'a form' ? ['/v1/audio/transcriptions', 'POST'] : ['/v1/files', 'OPTIONS'];
      const request = postBytes(path, form, [`Content-Type: ${FORM_TYPE}`]).toString('latin1');

      const response = await exchangeRaw(gateway.url, Buffer.from(request.replace('POST', method), 'latin1'));

      expect(response.status).toBe(503);
      expect(response.body.toString()).toBe(refusal('a'));
      expect((await (await replicas[0].nextRequest()).body).equals(form)).toBe(true);
      expect(replicas[1].requests).toEqual([]);
    },
  );

  test('a request of `pass` that may change something', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    replicas[0].answer(refuse('a'));
    const pass = ['POST /v1/images/generations', 'GET /version'];
    await using gateway = await startGateway({ replicas, config: { ...RETRY, pass } });

    expect((await gateway.post('/v1/images/generations', {})).status).toBe(503);
    expect(replicas[1].requests).toEqual([]);
    await gateway.post('/v1/images/generations', {});
    expect((await fetch(`${gateway.url}/version`)).status).toBe(200);
  });
});

test('a loading llama.cpp is skipped as ever, and does not count in `attempts`', async () => {
  const loading = '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}';
  await using replicas = await startFakeReplicas('a', 'b', 'c');
  replicas[0].answer(answerJson(loading, { status: 503 }));
  replicas[1].answer(refuse('b'));
  await using gateway = await startGateway({
    replicas: replicas.map(({ name, url }) => ({ name, url, engine: 'llamacpp' })),
    config: RETRY,
  });

  expect((await gateway.chat()).status).toBe(200);
  expect(await gateway.nextRecord()).toMatchObject({ replica: 'c', attempts: 3 });
});

test('a reload switches it on', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  replicas[0].answer(refuse('a'));
  await using gateway = await startGateway({ replicas });
  expect(await turnsOf(gateway, 2)).toEqual(['a', 'b']);

  gateway.writeConfig({ config: RETRY });
  expect((await gateway.reload()).status).toBe(200);

  expect(await turnsOf(gateway, 2)).toEqual(['b', 'b']);
});
