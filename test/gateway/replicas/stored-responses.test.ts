import { hash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import {
  answerJson,
  answerStream,
  event,
  type FakeReplica,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { createGate, createStreamGate } from '#testkit/gates.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const RESPONSES = '/v1/responses';

/** Answers every request with a response whose id names the replica. */
function keeping(name: string): Script {
  let count = 0;
  return async (exchange) => {
    const id = `resp_${name}${++count}`;
    await answerJson({ id, object: 'response', status: 'completed', model: 'm', output: [] })(exchange);
  };
}

const startKeeping = (name: string) => startFakeReplica({ name, script: keeping(name) });

async function start(
  options: Partial<StartGatewayOptions> = {},
): Promise<{ gateway: StartedGateway; replicas: readonly [FakeReplica, FakeReplica, FakeReplica] }> {
  const replicas = [await startKeeping('a'), await startKeeping('b'), await startKeeping('c')] as const;
  const gateway = await startGateway({ replicas, config: { endpoints: ['responses'] }, ...options });
  onTestFinished(async () => {
    await Promise.all([gateway.close(), ...replicas.map((replica) => replica.close())]);
  });
  return { gateway, replicas };
}

async function respond(gateway: StartedGateway, members: object = {}): Promise<string> {
  const response = await gateway.post(RESPONSES, { model: 'm', input: 'x', ...members });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

/** Which replica answers a request that follows this response. */
const follow = async (gateway: StartedGateway, id: string) =>
  (await respond(gateway, { previous_response_id: id })).at(5);

describe('a request that follows a response', () => {
  test('goes to the replica that made it, and so on, while others take turns', async () => {
    const { gateway } = await start();
    const first = [await respond(gateway), await respond(gateway), await respond(gateway)];
    expect(first).toEqual(['resp_a1', 'resp_b1', 'resp_c1']);
    for (let turn = 0; turn < 3; turn++) {
      for (const id of first) expect(await follow(gateway, id)).toBe(id.at(5));
    }
    const next = await respond(gateway);
    expect(next.at(5)).toBe('a');
    expect(await follow(gateway, await respond(gateway, { previous_response_id: next }))).toBe('a');
  });

  test('goes there while the response is still streaming', async () => {
    const { gateway, replicas } = await start();
    const [, streaming] = replicas;
    await respond(gateway);
    const gate = createStreamGate(
      [event({ type: 'response.created', response: { id: 'resp_live', model: 'm' } })],
      event({ type: 'response.completed', response: { id: 'resp_live', status: 'completed' } }),
    );
    streaming.answerOnce(gate.script);
    const response = await gateway.post(RESPONSES, { model: 'm', input: 'x', stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    expect(await follow(gateway, 'resp_live')).toBe('b');
    gate.open();
    while ((await reader?.read())?.done === false);
  });

  test('goes anywhere if the response is not known', async () => {
    const { gateway } = await start();
    const served = [];
    for (let i = 0; i < 3; i++) served.push(await follow(gateway, 'resp_unknown'));
    expect(served).toEqual(['a', 'b', 'c']);
  });

  test.each([
    ['drained', (gateway: StartedGateway) => gateway.admin('/admin/replicas/a/drain', { method: 'POST' })],
    ['gone', (_: StartedGateway, a: FakeReplica) => a.close()],
    [
      'removed',
      async (gateway: StartedGateway, _: FakeReplica, others: readonly FakeReplica[]) => {
        gateway.writeConfig({ replicas: others });
        await gateway.reload();
      },
    ],
  ] as const)('goes to another replica if that one is %s', async (_, stop) => {
    const { gateway, replicas } = await start();
    const [a, ...others] = replicas;
    const id = await respond(gateway);
    expect(id).toBe('resp_a1');
    await stop(gateway, a, others);
    const served = [await follow(gateway, id), await follow(gateway, id), await follow(gateway, id)];
    expect(served.toSorted()).not.toContain('a');
    expect(new Set(served).size).toBe(2);
  });

  test('waits for the replica if that is at its max_inflight, and goes to another when it is drained', async () => {
    await using a = await startKeeping('a');
    await using b = await startKeeping('b');
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: a.url, max_inflight: 1 }, b],
      config: { endpoints: ['responses'] },
    });
    const id = await respond(gateway);
    for (const end of ['answered', 'drained'] as const) {
      const gate = createGate(keeping('a'));
      a.answerOnce(gate.script);
      const before = a.requests.length;
      const blocking = respond(gateway, { previous_response_id: id });
      await a.untilRequests(before + 1);
      const following = follow(gateway, id);
      const waiting = async () => (await (await gateway.admin('/metrics')).text()).match(/waiting\S* 1$/m);
      await askUntil(waiting, (found) => found !== null);
      if (end === 'drained') await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
      else gate.open();
      expect(await following).toBe(end === 'drained' ? 'b' : 'a');
      gate.open();
      await blocking;
    }
  });

  test('makes no difference at an endpoint that keeps nothing', async () => {
    const { gateway } = await start();
    const id = await respond(gateway);
    const served = [];
    for (let i = 0; i < 3; i++) {
      const response = await gateway.chat({ previous_response_id: id });
      served.push(((await response.json()) as { id: string }).id.at(5));
    }
    expect(served).toEqual(['b', 'c', 'a']);
  });
});

describe('a request about a response', () => {
  test.each([
    ['GET', ''],
    ['GET', '?stream=true'],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items?limit=2'],
  ])('goes to the replica that made it, and leaves no record: %s %s', async (method, rest) => {
    const { gateway, replicas } = await start();
    await respond(gateway);
    const id = await respond(gateway);
    for (let i = 0; i < 3; i++) {
      const response = await fetch(`${gateway.url}${RESPONSES}/${id}${rest}`, { method });
      expect(response.status).toBe(200);
      expect(((await response.json()) as { id: string }).id.at(5)).toBe('b');
    }
    expect(replicas[1].requests.at(-1)).toMatchObject({ method, url: `${RESPONSES}/${id}${rest}` });
    expect(await gateway.waitForRecords(2)).toHaveLength(2);
    const unknown = await fetch(`${gateway.url}${RESPONSES}/resp_x${rest}`, { method });
    expect(unknown.status).toBe(200);
  });

  test.each([
    ['GET', '/resp_1/cancel'],
    ['POST', '/resp_1'],
    ['PUT', '/resp_1'],
    ['GET', '/resp_1/'],
    ['GET', '/../resp_1'],
    ['GET', '/resp_1/input_items/x'],
    ['GET', '/%2e%2e'],
    ['GET', `/${'x'.repeat(257)}`],
  ])('that no API has is 404: %s %s', async (method, rest) => {
    const { gateway, replicas } = await start();
    const response = await fetch(`${gateway.url}${RESPONSES}${rest}`, { method });
    expect(response.status).toBe(404);
    expect(replicas.flatMap(({ requests }) => requests)).toEqual([]);
  });

  test('is 404 unless the endpoint is on', async () => {
    const off = await start({ config: {} });
    expect((await fetch(`${off.gateway.url}${RESPONSES}/resp_1`)).status).toBe(404);
  });
});

describe('a request about a response, of a client that may use some models only,', () => {
  const ALIASES = { short: 'm' };
  const clients = Object.entries({ m: ['m'], n: ['n', 'nobody'], short: ['short'], all: undefined });
  const config = {
    endpoints: ['responses'],
    aliases: ALIASES,
    clients: clients.map(([name, models]) => ({
      name,
      tenant: 't',
      key_sha256: hash('sha256', name),
      ...(models === undefined ? {} : { models }),
    })),
  };
  const bearer = (name: string) => ({ headers: { Authorization: `Bearer ${name}` } });

  test.each([
    ['GET', ''],
    ['GET', '?stream=true'],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ])('is answered if one of them made it, else as if it was not there: %s %s', async (method, rest) => {
    await using a = await startKeeping('a');
    await using b = await startKeeping('b');
    const replicas = [{ name: 'a', url: a.url, models: ['m', 'n'] }, b];
    await using gateway = await startGateway({ replicas, config });
    const make = async (client: string, model: string) => {
      const response = await gateway.post(RESPONSES, { model, input: 'x' }, bearer(client));
      return ((await response.json()) as { id: string }).id;
    };
    const made = { m: await make('m', 'm'), n: await make('n', 'n'), short: await make('short', 'short') };
    const ask = async (client: string, id: string) => {
      const seen = a.requests.length + b.requests.length;
      const response = await fetch(`${gateway.url}${RESPONSES}/${id}${rest}`, { method, ...bearer(client) });
      const body = await response.json();
      if (response.status === 404) {
        expect(body).toMatchObject({ error: { code: 'not_found' } });
        expect(a.requests.length + b.requests.length).toBe(seen);
      } else expect(body).toMatchObject({ id: expect.stringContaining(id.slice(0, 6)) });
      return response.status;
    };
    const statuses = async (client: string) => [
      await ask(client, made.m),
      await ask(client, made.n),
      await ask(client, made.short),
    ];
    expect(await statuses('m')).toEqual([200, 404, 200]);
    expect(await statuses('n')).toEqual([404, 200, 404]);
    expect(await statuses('short')).toEqual([200, 404, 200]);
    expect(await statuses('all')).toEqual([200, 200, 200]);
    expect(await ask('m', 'resp_unknown')).toBe(404);
  });
});

describe('a response that is asked for again', () => {
  const config = { endpoints: ['responses'], aliases: { short: 'm', 'm-alias': 'm' } };
  const read = async (gateway: StartedGateway, id: string, rest = '') => {
    const response = await fetch(`${gateway.url}${RESPONSES}/${id}${rest}`);
    const text = await response.text();
    const length = response.headers.get('content-length');
    if (length !== null) expect(Number(length)).toBe(Buffer.byteLength(text));
    return text;
  };

  test('calls the model what the client called it when it was made, whichever worker is asked', async () => {
    const { gateway } = await start({ config: { ...config, gateway: { workers: 2 } } });
    const made: [string, string][] = [];
    for (const model of ['short', 'm', 'm-alias', 'short'])
      made.push([model, await respond(gateway, { model })]);
    for (const [model, id] of [...made, ...made, ...made]) {
      expect(JSON.parse(await read(gateway, id))).toMatchObject({ model });
    }
  });

  test('calls it so in events too', async () => {
    const { gateway, replicas } = await start({ config });
    const id = await respond(gateway, { model: 'short' });
    const data = (model: string) => [
      event({ type: 'response.created', response: { id, model } }),
      event({ type: 'response.completed', response: { id, status: 'completed', model } }),
    ];
    replicas[0].answerOnce(answerStream(data('m')));
    expect(await read(gateway, id, '?stream=true')).toBe(data('short').join(''));
  });

  test('has the engine\u2019s own name when the alias is gone, and if nothing is known of it', async () => {
    const { gateway } = await start({ config });
    const id = await respond(gateway, { model: 'short' });
    expect(JSON.parse(await read(gateway, 'resp_unknown'))).toMatchObject({ model: 'm' });
    gateway.writeConfig({ config: { ...config, aliases: { other: 'm' } } });
    await gateway.reload();
    expect(JSON.parse(await read(gateway, id))).toMatchObject({ model: 'm' });
  });
});

test('a response of one worker is known to the others', async () => {
  const { gateway } = await start({ config: { endpoints: ['responses'], gateway: { workers: 2 } } });
  const id = await respond(gateway);
  for (let i = 0; i < 10; i++) {
    const init = { headers: { Connection: 'close' } };
    const response = await gateway.post(RESPONSES, { model: 'm', previous_response_id: id }, init);
    expect(((await response.json()) as { id: string }).id.at(5)).toBe(id.at(5));
  }
});

test('an answer that is an error has no replica of its own', async () => {
  const { gateway, replicas } = await start();
  replicas[0].answerOnce(answerJson({ id: 'resp_failed', error: {} }, { status: 404 }));
  await gateway.post(RESPONSES, { model: 'm', input: 'x' });
  expect(await follow(gateway, 'resp_failed')).toBe('b');
  expect(await follow(gateway, 'resp_failed')).toBe('c');
});

test('a streamed response is known when it is over', async () => {
  const { gateway, replicas } = await start();
  const response = { id: 'resp_s', status: 'completed', model: 'm' };
  replicas[0].answerOnce(answerStream([event({ type: 'response.completed', response })]));
  await (await gateway.post(RESPONSES, { model: 'm', input: 'x', stream: true })).text();
  expect(await follow(gateway, 'resp_s')).toBe('a');
});
