import { createHash, randomBytes } from 'node:crypto';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { closeAndCollectTexts } from '#testkit/reading/shown-texts.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
const newKey = () => `sk-${randomBytes(24).toString('base64url')}`;

const SEARCH = newKey();
const SEARCH_NEXT = newKey();
const NARROW = newKey();
const EXPIRED = newKey();

const CLIENTS = [
  {
    name: 'search-team',
    key_sha256: [digestOf(SEARCH), digestOf(SEARCH_NEXT)],
    tenant: 'search',
    feature: 'rag',
  },
  { name: 'narrow', key_sha256: digestOf(NARROW).toUpperCase(), models: ['m', 'unknown'] },
  { name: 'former', key_sha256: digestOf(EXPIRED), expires: '2026-01-31T00:00:00Z' },
];

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, models: ['m', 'other'], api_key: 'replica-key' }],
    config: { clients: CLIENTS, log: { requests: true } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

const bearer = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });

describe('a request without a valid key', () => {
  test.each<[string, Record<string, string>]>([
    ['no key', {}],
    ['a key of nobody', { Authorization: `Bearer ${newKey()}` }],
    ['an expired key', { Authorization: `Bearer ${EXPIRED}` }],
    ['a valid key with another scheme', { Authorization: `Basic ${SEARCH}` }],
    ['the digest of a key', { Authorization: `Bearer ${digestOf(SEARCH)}` }],
    ['an empty key', { 'x-api-key': '' }],
    ['the name of a property', { 'x-api-key': '__proto__' }],
  ])('is refused and recorded: %s', async (_, headers) => {
    const seen = replica.requests.length;
    const response = await gateway.chat({}, { headers: { ...headers, 'X-Tenant': 'claimed' } });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await response.json()).toEqual({
      error: {
        message: 'The API key is missing, is not valid, or has expired.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_api_key',
      },
    });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 401, error_type: 'invalid_api_key' });
    expect(record).not.toHaveProperty('tenant');
    expect(record).not.toHaveProperty('client');
    expect(replica.requests).toHaveLength(seen);
  });

  test('gets the error that the OpenAI client has for it', async () => {
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: newKey(), maxRetries: 0 });
    const asked = openai.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
    await expect(asked).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(openai.models.list()).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    await gateway.nextRecord();
  });

  test('does not matter to the health check and to unknown paths', async () => {
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${gateway.url}/v1/files`)).status).toBe(404);
  });
});

describe('a request with a valid key', () => {
  test.each<[string, Record<string, string>]>([
    ['Authorization', { Authorization: `Bearer ${SEARCH}` }],
    ['Authorization in lower case', { authorization: `bearer  ${SEARCH}` }],
    ['the second key of the client', { Authorization: `Bearer ${SEARCH_NEXT}` }],
    ['x-api-key', { 'x-api-key': SEARCH }],
    ['x-api-key beside another Authorization', { 'x-api-key': SEARCH, Authorization: 'Basic eA==' }],
  ])('is recorded as the client of the key, and the replica does not see it: %s', async (_, headers) => {
    const response = await gateway.chat(
      {},
      { headers: { ...headers, 'X-Tenant': 'claimed', 'X-Feature': 'own' } },
    );
    expect(response.status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({
      client: 'search-team',
      tenant: 'search',
      feature: 'rag',
    });
    const received = await replica.nextRequest();
    expect(received.header('authorization')).toEqual(['Bearer replica-key']);
    expect(received.header('x-api-key')).toEqual([]);
    expect(received.header('x-tenant')).toEqual([]);
    expect(received.header('x-feature')).toEqual(['own']);
  });

  test('takes tenant and feature from the name and the header where the configuration has none', async () => {
    await gateway.chat({}, { headers: { 'x-api-key': NARROW, 'X-Feature': 'own' } });
    expect(await gateway.nextRecord()).toMatchObject({ client: 'narrow', tenant: 'narrow', feature: 'own' });
    await replica.nextRequest();
  });

  test('reaches the models of the key only: others do not exist for it', async () => {
    const refused = await gateway.chat({ model: 'other' }, bearer(NARROW));
    expect(refused.status).toBe(404);
    expect(await refused.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model' } });
    expect(await gateway.nextRecord()).toMatchObject({ status: 404, client: 'narrow', model: 'other' });
    const listed = await fetch(`${gateway.url}/v1/models`, bearer(NARROW));
    expect(await listed.json()).toMatchObject({ object: 'list', data: [{ id: 'm', object: 'model' }] });
    expect((await gateway.chat({ model: 'other' }, bearer(SEARCH))).status).toBe(200);
    await gateway.nextRecord();
    await replica.nextRequest();
  });
});

test('a replica without api_key does not see the key, neither in a repeated request nor in one for the models', async () => {
  await using bare = await startFakeReplica({ name: 'bare' });
  const unreachable = { name: 'down', url: refusedUrlBeside(bare) };
  const clients = [{ name: 'team', key_sha256: digestOf(SEARCH) }];
  await using other = await startGateway({ replicas: [unreachable, bare], config: { clients } });
  for (const field of ['Authorization', 'x-api-key']) {
    const headers = { [field]: field === 'Authorization' ? `Bearer ${SEARCH}` : SEARCH };
    for (let request = 0; request < 2; request++) {
      expect((await other.chat({}, { headers })).status).toBe(200);
      expect((await fetch(`${other.url}/v1/models`, { headers })).status).toBe(200);
    }
  }
  const records = await other.waitForRecords(4);
  expect(Math.max(...records.map(({ attempts }) => attempts ?? 0))).toBe(2);
  expect(bare.requests).toHaveLength(8);
  for (const { rawHeaders } of bare.requests) expect(rawHeaders.join('\n')).not.toContain(SEARCH);
});

test('the body of a refused request is not asked for, and not read into memory', async () => {
  using connection = await RawConnection.open(gateway.url);
  const head =
    'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 9000000\r\nExpect: 100-continue';
  connection.write(`${head}\r\n\r\n${'x'.repeat(60_000)}`);
  const { status, header } = await connection.readResponse();
  expect([status, header('connection')]).toEqual([401, ['close']]);
  expect(await (await gateway.admin('/admin/overview')).json()).toMatchObject({
    saturation: { buffered_bytes: { now: 0 } },
  });
  await gateway.nextRecord();
});

test('a reload changes who may send, and cuts nobody', async () => {
  const clients = [{ name: 'new-team', key_sha256: digestOf(NARROW) }];
  const replicas = [{ name: 'a', url: replica.url, models: ['m'] }];
  await using other = await startGateway({ replicas, config: { clients: CLIENTS } });
  const open = replica.requests.length;
  const gate = createGate();
  replica.answerOnce(gate.script);
  const running = other.chat({}, bearer(SEARCH));
  await replica.untilRequests(open + 1);
  other.writeConfig({ config: { clients: clients } });
  expect((await other.reload()).status).toBe(200);
  expect((await other.chat({}, bearer(SEARCH))).status).toBe(401);
  expect((await other.chat({}, bearer(NARROW))).status).toBe(200);
  gate.open();
  expect((await running).status).toBe(200);
});

test('no key is in a record, a log line, a metric, an answer of the admin API or a file', async () => {
  const all = await closeAndCollectTexts(gateway);
  expect(all).toContain('search-team');
  for (const key of [SEARCH, SEARCH_NEXT, NARROW, EXPIRED]) {
    expect(all).not.toContain(key);
    expect(all).not.toContain(digestOf(key));
  }
});
