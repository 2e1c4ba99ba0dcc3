import { hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { answerJson, event, type FakeReplica, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { AUDIENCE, makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const RESPONSES = '/v1/responses';
const ON = { endpoints: ['responses'] };

const clientOf = (name: string, entry: object = {}) => ({ name, key_sha256: hash('sha256', name), ...entry });
/** Two keys of one tenant, and one that is a tenant of its own. */
const CLIENTS = [clientOf('one', { tenant: 't' }), clientOf('two', { tenant: 't' }), clientOf('other')];
const withKey = (key: string, headers: object = {}) => ({ headers: { 'x-api-key': key, ...headers } });

/** Answers every request with a response whose id names the replica. */
function keeping(name: string): Script {
  let count = 0;
  return async (exchange) => {
    const id = `resp_${name}${++count}`;
    await answerJson({ id, object: 'response', status: 'completed', model: 'm', output: [] })(exchange);
  };
}

async function start(config: Readonly<Record<string, object | string>> = { clients: CLIENTS }) {
  const replicas: readonly FakeReplica[] = [
    await startFakeReplica({ name: 'a', script: keeping('a') }),
    await startFakeReplica({ name: 'b', script: keeping('b') }),
  ];
  const gateway = await startGateway({ replicas, config: { ...ON, ...config } });
  onTestFinished(async () => {
    await Promise.all([gateway.close(), ...replicas.map((replica) => replica.close())]);
  });
  const seenCount = () => replicas.reduce((sum, { requests }) => sum + requests.length, 0);
  return { gateway, replicas, seenCount };
}

const respond = (gateway: StartedGateway, key: string, members: object = {}) =>
  gateway.post(RESPONSES, { model: 'm', input: 'x', ...members }, withKey(key));

async function make(gateway: StartedGateway, key: string, members: object = {}): Promise<string> {
  const response = await respond(gateway, key, members);
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

const ask = (gateway: StartedGateway, key: string, path: string, method = 'GET') =>
  fetch(`${gateway.url}${RESPONSES}/${path}`, { method, ...withKey(key) });
const statusOf = async (gateway: StartedGateway, key: string, path: string) =>
  (await ask(gateway, key, path)).status;

/** An answer, without what differs from request to request. */
async function contentOf(response: Response) {
  const fields = [...response.headers].filter(([name]) => !['x-request-id', 'date'].includes(name));
  return { status: response.status, fields, text: await response.text() };
}

describe('a stored response belongs to the tenant of the key that made it:', () => {
  test.each([
    ['GET', ''],
    ['GET', '?stream=true'],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ])('%s %s of another is answered as if it was not there, and no replica sees it', async (method, rest) => {
    const { gateway, seenCount } = await start();
    const id = await make(gateway, 'one');
    const before = seenCount();
    const foreign = await contentOf(await ask(gateway, 'other', id + rest, method));
    expect(foreign.status).toBe(404);
    expect(JSON.parse(foreign.text)).toMatchObject({ error: { type: 'invalid_request_error' } });
    expect(foreign).toEqual(await contentOf(await ask(gateway, 'other', `resp_unknown${rest}`, method)));
    expect(seenCount()).toBe(before);
    for (const key of ['one', 'two']) expect((await ask(gateway, key, id + rest, method)).status).toBe(200);
  });

  test('another may not continue it: 404 as for one that is not known, and no replica sees it', async () => {
    const { gateway, replicas, seenCount } = await start();
    const id = await make(gateway, 'one');
    const before = seenCount();
    const foreign = await contentOf(await respond(gateway, 'other', { previous_response_id: id }));
    expect(foreign.status).toBe(404);
    expect(JSON.parse(foreign.text)).toEqual({
      error: {
        message: expect.any(String),
        type: 'invalid_request_error',
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      },
    });
    const unknown = await respond(gateway, 'other', { previous_response_id: 'resp_unknown' });
    expect(foreign).toEqual(await contentOf(unknown));
    expect(seenCount()).toBe(before);
    const [, record] = await gateway.waitForRecords(3);
    expect(record).toMatchObject({
      status: 404,
      error_type: 'previous_response_not_found',
      client: 'other',
      previous_response_id: id,
    });
    expect(record).not.toHaveProperty('replica');
    expect(await make(gateway, 'two', { previous_response_id: id })).toMatch(/^resp_a/);
    expect(replicas[0]?.requests.at(-1)).toMatchObject({ url: RESPONSES });
  });

  test.each([
    ['is no string', ['resp_a1']],
    ['is a number', 1],
    ['is empty', ''],
    ['is longer than the gateway reads', 'r'.repeat(1025)],
  ])('an id that %s names none', async (_, previous) => {
    const { gateway, seenCount } = await start();
    const response = await respond(gateway, 'one', { previous_response_id: previous });
    expect(response.status).toBe(404);
    expect(seenCount()).toBe(0);
    await make(gateway, 'one', { previous_response_id: null });
  });

  test('of members that come twice the last one counts, as at the engine', async () => {
    const { gateway } = await start();
    const own = await make(gateway, 'other');
    const foreign = await make(gateway, 'one');
    const send = async (...ids: readonly string[]) => {
      const members = ids.map((id) => `"previous_\\u0072esponse_id":${JSON.stringify(id)}`);
      const init = {
        method: 'POST',
        body: `{"model":"m","input":"x",${members.join()}}`,
        ...withKey('other'),
      };
      return (await fetch(gateway.url + RESPONSES, init)).status;
    };
    expect([await send(own, foreign), await send(foreign, own)]).toEqual([404, 200]);
  });

  test('while it is still streaming', async () => {
    const { gateway, replicas } = await start();
    const gate = createStreamGate(
      [event({ type: 'response.created', response: { id: 'resp_live', model: 'm' } })],
      event({ type: 'response.completed', response: { id: 'resp_live', status: 'completed' } }),
    );
    replicas[0]?.answerOnce(gate.script);
    const response = await respond(gateway, 'one', { stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    expect(await statusOf(gateway, 'other', 'resp_live')).toBe(404);
    expect((await respond(gateway, 'other', { previous_response_id: 'resp_live' })).status).toBe(404);
    expect(await statusOf(gateway, 'two', 'resp_live')).toBe(200);
    gate.open();
    while ((await reader?.read())?.done === false);
  });

  test('from its answer on, in every worker', async () => {
    const { gateway } = await start({ clients: CLIENTS, gateway: { workers: 2 } });
    const fresh = (key: string) => withKey(key, { Connection: 'close' });
    const statuses = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const id = await make(gateway, 'one');
      for (const key of ['two', 'other']) {
        const url = `${gateway.url}${RESPONSES}/${id}`;
        statuses.add(`${key} ${(await fetch(url, fresh(key))).status}`);
        const next = { model: 'm', previous_response_id: id };
        statuses.add(`${key} ${(await gateway.post(RESPONSES, next, fresh(key))).status}`);
      }
    }
    expect([...statuses].sort()).toEqual(['other 404', 'two 200']);
  });

  test('also when its replica is gone: only the owner learns that from an engine', async () => {
    const { gateway, replicas, seenCount } = await start();
    const [, b] = replicas;
    if (b === undefined) throw new Error('no replica');
    const id = await make(gateway, 'one');
    gateway.writeConfig({ replicas: [b] });
    await gateway.reload();
    b.answer(answerJson({ error: { message: 'no such response' } }, { status: 404 }));
    const before = seenCount();
    expect(await statusOf(gateway, 'other', id)).toBe(404);
    expect(seenCount()).toBe(before);
    expect(await (await ask(gateway, 'one', id)).json()).toEqual({ error: { message: 'no such response' } });
  });

  test('also after a restart of the gateway', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'responses-'));
    onTestFinished(() => rm(stateDir, { recursive: true }));
    await using replica = await startFakeReplica({ name: 'a', script: keeping('a') });
    const options = { replicas: [replica], config: { ...ON, clients: CLIENTS }, stateDir };
    await using first = await startGateway(options);
    const id = await make(first, 'one');
    await first.close();
    await using next = await startGateway(options);
    expect(await statusOf(next, 'other', id)).toBe(404);
    expect(await statusOf(next, 'two', id)).toBe(200);
    expect((await respond(next, 'two', { previous_response_id: id })).status).toBe(200);
  });

  test('tokens of an issuer are clients of the tenant that they name', async () => {
    const key = await makeKey('k1');
    await using issuer = await startIssuer(key);
    const { gateway } = await start({
      clients: [clientOf('one', { tenant: 'acme' })],
      jwt: {
        issuer: issuer.issuer,
        audience: [AUDIENCE],
        jwks: issuer.jwksUrl,
        tenant_claim: 'tenant',
        client_claim: 'azp',
      },
    });
    const tokenOf = (tenant: string, azp: string) => issuer.issue(key, { tenant, azp });
    const id = await make(gateway, await tokenOf('acme', 'portal'));
    expect(await statusOf(gateway, await tokenOf('acme', 'batch'), id)).toBe(200);
    expect(await statusOf(gateway, 'one', id)).toBe(200);
    expect(await statusOf(gateway, await tokenOf('acme2', 'portal'), id)).toBe(404);
  });

  test('a trusted proxy names the tenant, however long', async () => {
    const long = 'x'.repeat(300);
    const { gateway } = await start({
      clients: [clientOf('portal')],
      gateway: { trusted_proxies: ['127.0.0.0/8'] },
    });
    const of = (tenant: string) => withKey('portal', { 'X-Tenant': tenant });
    const made = await gateway.post(RESPONSES, { model: 'm' }, of(`${long}1`));
    const { id } = (await made.json()) as { id: string };
    const statusFor = async (tenant: string) =>
      (await fetch(`${gateway.url}${RESPONSES}/${id}`, of(tenant))).status;
    expect(await statusFor(`${long}1`)).toBe(200);
    expect(await statusFor(`${long}2`)).toBe(404);
    expect(await statusFor('portal')).toBe(404);
  });
});

describe('whose a response is', () => {
  test('stays with the tenant when clients are renamed, and goes with a client that has no other tenant', async () => {
    const { gateway } = await start();
    const [ofTenant, ofClient] = [await make(gateway, 'one'), await make(gateway, 'other')];
    const renamed = [
      clientOf('one', { name: 'new', tenant: 't' }),
      clientOf('other', { name: 'renamed' }),
      clientOf('third', { tenant: 'other' }),
    ];
    gateway.writeConfig({ config: { ...ON, clients: renamed } });
    await gateway.reload();
    expect(await statusOf(gateway, 'one', ofTenant)).toBe(200);
    expect(await statusOf(gateway, 'other', ofClient)).toBe(404);
    expect(await statusOf(gateway, 'third', ofClient)).toBe(200);
  });

  test('is nobody\u2019s if it was made without keys, and makes no difference without them', async () => {
    const { gateway } = await start({});
    const open = await make(gateway, '');
    gateway.writeConfig({ config: { ...ON, clients: CLIENTS } });
    await gateway.reload();
    expect(await statusOf(gateway, 'one', open)).toBe(404);
    const id = await make(gateway, 'one');
    gateway.writeConfig({ config: ON });
    await gateway.reload();
    for (const each of [open, id, 'resp_unknown']) expect(await statusOf(gateway, '', each)).toBe(200);
  });

  test('nobody can take it over by choosing its id, nor have one whose id the request chose', async () => {
    const { gateway, replicas, seenCount } = await start();
    const claim = async (key: string, id: string, members: object = { request_id: id }) => {
      for (const replica of replicas) replica.answer(answerJson({ id, model: 'm', output: [] }));
      await make(gateway, key, members);
    };
    await claim('one', 'resp_known', {});
    await claim('other', 'resp_known');
    await claim('other', 'resp_old');
    // An engine may have other names for it.
    await claim('other', 'resp_known', { id: 'resp_known' });
    const before = seenCount();
    expect(await statusOf(gateway, 'other', 'resp_known')).toBe(404);
    expect(await statusOf(gateway, 'other', 'resp_old')).toBe(404);
    expect(seenCount()).toBe(before);
    expect(await statusOf(gateway, 'one', 'resp_known')).toBe(200);
  });
});

describe('paths of responses in `pass`', () => {
  const PASS = [
    ...['GET /v1/responses', 'GET /v1/responses/*', 'HEAD /v1/responses/*', 'POST /v1/responses/*'],
    ...['GET /V1/Responses/*', 'GET /api/v1/*', 'GET /v1/responses_of_mine'],
  ];
  const PATHS = [
    ['HEAD', '/v1/responses/resp_a1'],
    ['GET', '/v1/responses'],
    ['GET', '/v1/responses/resp_a1/other'],
    ['GET', '/v1/responses/resp_a1.'],
    ['POST', '/v1/responses/compact'],
    ['POST', '/v1/responses/resp_a1/tool_outputs'],
    ['GET', '/V1/Responses/resp_a1'],
    ['GET', '/api/v1/responses/resp_a1'],
  ] as const;
  const send = async ({ url }: StartedGateway, method: string, path: string) =>
    (await fetch(url + path, { method, ...withKey('other') })).status;

  test('are relayed without keys', async () => {
    const { gateway } = await start({ pass: PASS });
    for (const [method, path] of PATHS) expect(await send(gateway, method, path)).toBe(200);
  });

  test('are 404 with keys: whose response they are about is not known', async () => {
    const { gateway, seenCount } = await start({ clients: CLIENTS, pass: PASS });
    await make(gateway, 'one');
    const before = seenCount();
    for (const [method, path] of PATHS)
      expect([path, await send(gateway, method, path)]).toEqual([path, 404]);
    expect(seenCount()).toBe(before);
    expect(await send(gateway, 'GET', '/v1/responses_of_mine')).toBe(200);
  });
});
