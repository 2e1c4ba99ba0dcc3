import { hash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import {
  answerJson,
  type FakeReplica,
  hang,
  resetAfterRequest,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const RESPONSES = '/v1/responses';
const CONFIG = {
  endpoints: ['responses'],
  pass: ['GET /version', 'POST /v1/images/generations'],
};

const clientOf = (name: string, entry: object = {}) => ({ name, key_sha256: hash('sha256', name), ...entry });
const withKey = (key: string, init: RequestInit = {}) => ({ ...init, headers: { 'x-api-key': key } });

async function start(
  clients: readonly object[],
  more: object = {},
): Promise<{ gateway: StartedGateway; replica: FakeReplica }> {
  const replica = await startFakeReplica();
  replica.answer(answerJson({ id: 'resp_1', model: 'm', output: [] }));
  const gateway = await startGateway({ replicas: [replica], config: { ...CONFIG, clients, ...more } });
  onTestFinished(async () => {
    await Promise.all([gateway.close(), replica.close()]);
  });
  return { gateway, replica };
}

const make = async (gateway: StartedGateway, key: string) =>
  (await gateway.post(RESPONSES, { model: 'm', input: 'x' }, withKey(key))).text();
const get = (gateway: StartedGateway, key: string, path: string, init: RequestInit = {}) =>
  fetch(gateway.url + path, withKey(key, init));
const statusOf = async (...args: Parameters<typeof get>) => {
  const response = await get(...args);
  await response.text();
  return response.status;
};

/** A path of `pass`, and the calls about a stored response. */
const UNRECORDED = [
  ['GET', '/version'],
  ['POST', '/v1/images/generations'],
  ['GET', `${RESPONSES}/resp_1`],
  ['GET', `${RESPONSES}/resp_1?stream=true`],
  ['DELETE', `${RESPONSES}/resp_1`],
  ['POST', `${RESPONSES}/resp_1/cancel`],
  ['GET', `${RESPONSES}/resp_1/input_items`],
] as const;

test.each(UNRECORDED)('%s %s counts for requests per minute of the client', async (method, path) => {
  const { gateway, replica } = await start([clientOf('a', { requests_per_minute: 3 })]);
  await make(gateway, 'a');
  const first = await get(gateway, 'a', path, { method });
  expect(first.status).toBe(200);
  expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('1');
  await first.text();
  await (await gateway.chat({}, withKey('a'))).text();
  const seen = replica.requests.length;
  const refused = await get(gateway, 'a', path, { method });
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({
    error: { type: 'requests', param: null, code: 'rate_limit_exceeded' },
  });
  expect((await gateway.chat({}, withKey('a'))).status).toBe(429);
  expect(replica.requests).toHaveLength(seen);
});

test.each(UNRECORDED)('%s %s counts for requests per minute of the tenant', async (method, path) => {
  const { gateway } = await start(
    [clientOf('a', { tenant: 't' }), clientOf('b', { tenant: 't' }), clientOf('c')],
    {
      tenant_limits: { default: { requests_per_minute: 2 } },
    },
  );
  await make(gateway, 'a');
  expect(await statusOf(gateway, 'b', path, { method })).toBe(200);
  expect([await statusOf(gateway, 'a', path, { method }), await statusOf(gateway, 'b', '/version')]).toEqual([
    429, 429,
  ]);
  expect(await statusOf(gateway, 'c', '/version')).toBe(200);
});

test('one that is 404 counts, so that ids and paths cannot be tried without end', async () => {
  const { gateway } = await start([
    clientOf('a', { requests_per_minute: 2 }),
    clientOf('narrow', { models: ['m'], requests_per_minute: 1 }),
  ]);
  const statuses = [];
  for (const id of ['x', 'y', 'z']) statuses.push(await statusOf(gateway, 'a', `${RESPONSES}/resp_${id}`));
  expect(statuses).toEqual([404, 404, 429]);
  const ofNarrow = [
    await statusOf(gateway, 'narrow', '/version'),
    await statusOf(gateway, 'narrow', '/version'),
  ];
  expect(ofNarrow).toEqual([404, 429]);
});

test('it costs no tokens, and needs none', async () => {
  const { gateway, replica } = await start([clientOf('a', { tokens_per_minute: 100 })]);
  replica.answer(answerJson({ usage: { prompt_tokens: 400, completion_tokens: 500, total_tokens: 900 } }));
  const tokensLeft = async () => {
    const response = await get(gateway, 'a', '/version');
    await response.text();
    expect(response.status).toBe(200);
    return response.headers.get('x-ratelimit-remaining-tokens');
  };
  expect([await tokensLeft(), await tokensLeft()]).toEqual(['100', '100']);
  await (await gateway.chat({}, withKey('a'))).text();
  await gateway.waitForRecords(1);
  expect([await tokensLeft(), await tokensLeft()]).toEqual(['0', '0']);
});

const ONE_AT_A_TIME = [
  clientOf('a', { tenant: 't', max_inflight: 1 }),
  clientOf('b', { tenant: 't' }),
  clientOf('c', { tenant: 'u' }),
];

test.each(['/version', `${RESPONSES}/resp_1`])('%s is in flight until its stream is over', async (path) => {
  const { gateway, replica } = await start(ONE_AT_A_TIME, {
    tenant_limits: { default: { max_inflight: 1 } },
  });
  await make(gateway, 'a');
  const gate = createStreamGate(['data: 1\n\n'], 'data: 2\n\n');
  replica.answerOnce(gate.script);
  const streaming = await get(gateway, 'a', path);
  const reader = streaming.body?.getReader();
  await reader?.read();
  for (const key of ['a', 'b']) {
    const refused = await get(gateway, key, '/version');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
  }
  expect((await gateway.chat({}, withKey('a'))).status).toBe(429);
  expect(await statusOf(gateway, 'c', '/version')).toBe(200);
  gate.open();
  while ((await reader?.read())?.done === false);
  await expect.poll(() => statusOf(gateway, 'a', path)).toBe(200);
});

test.each([
  ['the replica resets', resetAfterRequest, 502],
  ['the replica answers an error', answerJson({ error: {} }, { status: 500 }), 500],
  ['the replica does not answer in time', hang, 504],
  ['the replica cannot be reached', null, 502],
  ['the body is too large', answerJson({}), 413],
  ['the client leaves', hang, null],
] as const)('it is in flight no more when %s', async (_, script, status) => {
  const { gateway, replica } = await start(ONE_AT_A_TIME, {
    limits: { body: '1KiB' },
    timeouts: { first_byte: status === 504 ? '100ms' : '60s' },
  });
  const url = '/v1/images/generations';
  for (let round = 0; round < 3; round++) {
    if (script === null) await replica.close();
    else replica.answer(script);
    const leaving = new AbortController();
    const body = 'x'.repeat(status === 413 ? 2000 : 10);
    const seen = replica.requests.length;
    const sent = get(gateway, 'a', url, { method: 'POST', body, signal: leaving.signal }).then(
      async (response) => {
        await response.text();
        return response.status;
      },
      () => null,
    );
    if (status === null) {
      await replica.untilRequests(seen + 1);
      leaving.abort();
    }
    expect(await sent).toBe(status);
    // That the client has left is known a moment later.
    if (status === null) {
      replica.answer(answerJson({}));
      await expect.poll(() => statusOf(gateway, 'a', '/version')).toBe(200);
    }
  }
});
