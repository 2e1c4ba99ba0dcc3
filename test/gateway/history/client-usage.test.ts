import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');
const CLIENTS = ['acme', 'other', 'marked'].map((name) => ({
  name,
  key_sha256: sha256(`key-of-${name}`),
  // A right-to-left mark, which records leave out.
  ...(name === 'marked' && { tenant: 'שלום\u200f' }),
}));

let replica: FakeReplica;
let gateway: StartedGateway;

const withKey = (name: string) => ({ headers: { Authorization: `Bearer key-of-${name}` } });

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [{ name: 'secret-name', url: replica.url }],
    config: { history: { client_usage: true }, clients: CLIENTS, gateway: { workers: 2 } },
  });
  for (const name of ['acme', 'acme', 'other', 'marked'])
    await (await gateway.chat({}, withKey(name))).text();
  await gateway.waitForRecords(4);
});
afterAll(async () => {
  await gateway.close();
  await replica.close();
});

async function ask(query: string, name = 'acme') {
  const response = await fetch(`${gateway.url}/v1/usage${query}`, withKey(name));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

it('tells a client its own usage alone, and nothing that is the operator’s', async () => {
  for (const [name, requests] of [
    ['acme', 2],
    ['other', 1],
    ['marked', 1],
  ] as const) {
    const { status, headers, text } = await ask('?since=1h&by=model', name);
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
    expect(JSON.parse(text)).toMatchObject({
      object: 'usage',
      total: { requests },
      rows: [{ model: 'm', requests }],
    });
    expect(text).not.toMatch(/secret-name|gpu_seconds|costs|attempts/);
  }
});

const NAMES = 'query: it may have since, until, time_zone, by, step';
const BY = 'by: names of model, endpoint, each once, with commas between them';

it.each([
  ['?tenant=other', NAMES],
  ['?client=other', NAMES],
  ['?by=tenant', BY],
  ['?by=client,model', BY],
  ['?by=replica', BY],
  ['?since=soon', expect.stringMatching(/^since: a time such as /)],
  ['?step=1m&since=400d', 'step: at most 1000 in the span'],
  ['?since=today&until=7d', 'since: it is after until'],
])('refuses %s, and says what is right: %s', async (query, message) => {
  const { status, text } = await ask(query);
  expect([status, JSON.parse(text).error]).toMatchObject([400, { code: 'invalid_request', message }]);
});

it('tells who comes by a trusted proxy the usage of the tenant that the proxy names', async () => {
  await using at = await startGateway({
    replicas: [replica],
    config: {
      history: { client_usage: true },
      clients: CLIENTS,
      gateway: { trusted_proxies: ['127.0.0.1'] },
    },
  });
  const by = (tenant: string) => ({ headers: { ...withKey('acme').headers, 'X-Tenant': tenant } });
  for (const tenant of ['one', 'two', 'two']) await (await at.chat({}, by(tenant))).text();
  await at.waitForRecords(3);
  for (const [tenant, requests] of [
    ['one', 1],
    ['two', 2],
    ['', 0],
  ] as const) {
    const answer = await fetch(`${at.url}/v1/usage?since=1h`, by(tenant));
    expect(await answer.json()).toMatchObject({ total: { requests } });
  }
});

it('tells operators of a tenant by the name that it was given, also if records leave out a part of that', async () => {
  const tenant = encodeURIComponent('שלום\u200f');
  const usage = await (await gateway.admin(`/admin/usage?by=tenant&since=1h&tenant=${tenant}`)).json();
  expect(usage).toMatchObject({ total: { requests: 1 }, rows: [{ tenant: 'שלום' }] });
  for (const path of ['records?', 'records?since=1h&', 'statement-records?since=1h&']) {
    const answer = await (await gateway.admin(`/admin/${path}tenant=${tenant}`)).json();
    expect((answer as { records: readonly object[] }).records).toHaveLength(1);
  }
});

it('tells nobody without a key anything', async () => {
  const response = await fetch(`${gateway.url}/v1/usage`);
  expect(response.status).toBe(401);
});

it('leaves no record', async () => {
  await ask('');
  await (await gateway.chat({}, withKey('other'))).text();
  const records = await gateway.waitForRecords(5);
  expect(new Set(records.map(({ endpoint }) => endpoint))).toEqual(new Set(['/v1/chat/completions']));
});

it.each([
  ['by default', { history: {}, clients: CLIENTS }],
  ['without the history', { history: 'off', clients: CLIENTS }],
  ['without clients', { history: { client_usage: true } }],
] as const)('is no path of the gateway %s', async (_, config) => {
  await using plain = await startGateway({ replicas: [replica], config });
  expect((await fetch(`${plain.url}/v1/usage`, withKey('acme'))).status).toBe(404);
});

it('says when to ask again while the history cannot be read', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-unread-'));
  await mkdir(join(folder.path, 'history.db')); // no database can be opened there
  await using other = await startGateway({
    replicas: [{ name: 'r', url: replica.url }],
    stateDir: folder.path,
    config: { history: { client_usage: true }, clients: CLIENTS },
  });
  const own = await fetch(`${other.url}/v1/usage`, withKey('acme'));
  const all = await other.admin('/admin/usage');
  expect([own.status, all.status]).toEqual([503, 503]);
  expect([own, all].map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1']);
});
