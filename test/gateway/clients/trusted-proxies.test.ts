import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const KEY = 'sk-of-the-portal-0123456789';
const CLIENTS = [
  {
    name: 'portal',
    key_sha256: createHash('sha256').update(KEY).digest('hex'),
    tenant: 'portal-itself',
    feature: 'chat',
    models: ['m'],
  },
];

/** Both are this machine. */
const PROXY = '127.0.0.1';
const ANYBODY = '127.0.0.2';

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, models: ['m', 'other'] }],
    config: { gateway: { trusted_proxies: [PROXY] }, clients: CLIENTS, pass: ['GET /version'] },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

/** Sends a request from a local address, and returns its status. */
async function sendFrom(
  localAddress: string,
  headers: Readonly<Record<string, string | string[]>>,
  { model = 'm', path = '/v1/chat/completions', method = 'POST', to = gateway } = {},
): Promise<number | undefined> {
  const options = { method, localAddress, agent: false as const, headers };
  const sent = request(`${to.url}${path}`, options);
  sent.end(method === 'POST' ? JSON.stringify({ model, messages: [] }) : undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

const withKey = (headers: object = {}) => ({ Authorization: `Bearer ${KEY}`, ...headers });

describe('with API keys, the tenant header of a trusted proxy', () => {
  test('is recorded and relayed, under the name of the key', async () => {
    expect(await sendFrom(PROXY, withKey({ 'X-Tenant': 'acme' }))).toBe(200);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ tenant: 'acme', client: 'portal', feature: 'chat' });
    const received = await replica.nextRequest();
    expect(received.header('x-tenant')).toEqual(['acme']);
    expect(received.header('authorization')).toEqual([]);
  });

  test('may be absent or empty: then the tenant is that of the key', async () => {
    for (const headers of [{}, { 'X-Tenant': '' }]) {
      expect(await sendFrom(PROXY, withKey(headers))).toBe(200);
      expect(await gateway.nextRecord()).toMatchObject({ tenant: 'portal-itself' });
      await replica.nextRequest();
    }
  });

  test('is relayed with passed requests and those for the models, too', async () => {
    const to = await startGateway({
      replicas: [replica],
      config: {
        gateway: { trusted_proxies: [PROXY] },
        clients: CLIENTS.map(({ models: _, ...client }) => client),
        pass: ['GET /version'],
      },
    });
    for (const path of ['/version', '/v1/models']) {
      for (const [address, relayed] of [
        [PROXY, ['acme']],
        [ANYBODY, []],
      ] as const) {
        await sendFrom(address, withKey({ 'X-Tenant': 'acme' }), { path, method: 'GET', to });
        expect((await replica.nextRequest()).header('x-tenant')).toEqual(relayed);
      }
    }
    await to.close();
  });

  test('that comes twice names nobody: then the tenant is that of the key', async () => {
    expect(await sendFrom(PROXY, withKey({ 'X-Tenant': ['one', 'two'] }))).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ tenant: 'portal-itself' });
    await replica.nextRequest();
  });

  test('is not recorded of a request without a valid key', async () => {
    for (const key of [{}, { Authorization: 'Bearer sk-of-nobody' }]) {
      expect(await sendFrom(PROXY, { ...key, 'X-Tenant': 'acme', 'X-Feature': 'own' })).toBe(401);
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ error_type: 'invalid_api_key', feature: 'own' });
      expect(record).not.toHaveProperty('tenant');
    }
  });

  test('replaces neither the key nor its models', async () => {
    expect(await sendFrom(PROXY, { 'X-Tenant': 'acme' })).toBe(401);
    expect(await gateway.nextRecord()).toMatchObject({ error_type: 'invalid_api_key' });
    expect(await sendFrom(PROXY, withKey({ 'X-Tenant': 'acme' }), { model: 'other' })).toBe(404);
    expect(await gateway.nextRecord()).toMatchObject({ error_type: 'model_not_found', tenant: 'acme' });
  });
});

test('the tenant header of anybody else is ignored, whatever the request says about where it comes from', async () => {
  const claims = { 'X-Forwarded-For': PROXY, 'X-Real-IP': PROXY, Forwarded: `for=${PROXY}` };
  expect(await sendFrom(ANYBODY, withKey({ 'X-Tenant': 'acme', ...claims }))).toBe(200);
  expect(await gateway.nextRecord()).toMatchObject({ tenant: 'portal-itself', client: 'portal' });
  expect((await replica.nextRequest()).header('x-tenant')).toEqual([]);
});

test('a reload changes who is trusted', async () => {
  await using own = await startGateway({
    replicas: [replica],
    config: { gateway: { trusted_proxies: [] }, clients: CLIENTS },
  });
  await sendFrom(PROXY, withKey({ 'X-Tenant': 'acme' }), { to: own });
  expect(await own.nextRecord()).toMatchObject({ tenant: 'portal-itself' });
  own.writeConfig({ config: { gateway: { trusted_proxies: ['127.0.0.0/8'] }, clients: CLIENTS } });
  expect(await (await own.reload()).json()).toMatchObject({ changed: ['gateway.trusted_proxies'] });
  await sendFrom(ANYBODY, withKey({ 'X-Tenant': 'acme' }), { to: own });
  expect(await own.nextRecord()).toMatchObject({ tenant: 'acme' });
});

test('without API keys everybody names the tenant, as without the list', async () => {
  await using own = await startGateway({
    replicas: [replica],
    config: { gateway: { trusted_proxies: [PROXY] } },
  });
  await sendFrom(ANYBODY, { 'X-Tenant': 'acme' }, { to: own });
  expect(await own.nextRecord()).toMatchObject({ tenant: 'acme' });
});
