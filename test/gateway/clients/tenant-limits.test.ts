import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, test, vi } from 'vitest';
import { LimitRows } from '#access/limits';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const clientOf = (name: string, entry: object = {}) => ({
  name,
  key_sha256: createHash('sha256').update(name).digest('hex'),
  ...entry,
});
const withKey = (name: string) => ({ headers: { 'x-api-key': name } });

/** Starts a gateway with clients `a` and `b` of tenant `t`, and `c`, `d` of tenants of their own. */
async function start(tenantLimits: Readonly<Record<string, unknown>>, { ofA = {}, gateway = {} } = {}) {
  const replica = await startFakeReplica();
  const clients = [
    clientOf('a', { tenant: 't', ...ofA }),
    clientOf('b', { tenant: 't' }),
    clientOf('c'),
    clientOf('d'),
  ];
  const config = { gateway, clients, tenant_limits: tenantLimits };
  const started = await startGateway({ replicas: [replica], config });
  const statusOf = async (name: string) => {
    const answer = await started.chat({}, withKey(name));
    await answer.text();
    return answer.status;
  };
  return {
    replica,
    gateway: started,
    statusOf,
    async [Symbol.asyncDispose]() {
      await Promise.all([started.close(), replica.close()]);
    },
  };
}

test('a tenant whose use cannot be counted is refused until it can, and told so', async () => {
  await using at = await start({ default: { requests_per_minute: 100 } });
  const noRow = vi.spyOn(LimitRows.prototype, 'rowOfTenant').mockReturnValue(null);
  try {
    const refused = await at.gateway.chat({}, withKey('c'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ error: { code: 'limits_unavailable' } });
  } finally {
    noRow.mockRestore();
  }
  expect(await at.statusOf('c')).toBe(200);
  const [record] = await at.gateway.waitForRecords(2);
  expect(record).toMatchObject({ status: 503, error_type: 'limits_unavailable', tenant: 'c' });
  expect(at.replica.requests).toHaveLength(1);
});

test('two clients of a tenant share its limit; others have the limit of default, each for itself', async () => {
  await using at = await start({ t: { requests_per_minute: 1 }, default: { requests_per_minute: 1 } });
  expect(await at.statusOf('a')).toBe(200);
  const refused = await at.gateway.chat({}, withKey('b'));
  expect(refused.status).toBe(429);
  const message =
    /^The tenant of the request has reached its limit of requests per minute \(1\)\. There is room again in \d+ s\.$/;
  expect(await refused.json()).toMatchObject({
    error: { code: 'rate_limit_exceeded', type: 'requests', message: expect.stringMatching(message) },
  });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('1');
  expect([await at.statusOf('c'), await at.statusOf('d')]).toEqual([200, 200]);
  expect([await at.statusOf('c'), await at.statusOf('d')]).toEqual([429, 429]);
  const records = await at.gateway.waitForRecords(6);
  expect(records[1]).toMatchObject({
    status: 429,
    error_type: 'rate_limit_exceeded',
    refused_by: 'tenant.requests_per_minute',
    tenant: 't',
    client: 'b',
  });
});

test('a tenant has its limit by the name that it was given, also if records leave out a part of that', async () => {
  const [marked, long] = ['שלום\u200f', '🦊'.repeat(256)];
  const clients = [clientOf('a', { tenant: marked }), clientOf('b', { tenant: long })];
  const one = { requests_per_minute: 1 };
  await using replica = await startFakeReplica();
  const config = {
    clients,
    tenant_limits: { [marked]: one, [long]: one, default: { requests_per_minute: 9 } },
  };
  await using gateway = await startGateway({ replicas: [replica], config });
  for (const name of ['a', 'b']) {
    expect((await gateway.chat({}, withKey(name))).status).toBe(200);
    expect((await gateway.chat({}, withKey(name))).status).toBe(429);
  }
});

test('a tenant with a row without limits has none, nor has one without a row when there is no default', async () => {
  await using at = await start({ t: {}, default: { requests_per_minute: 1 } });
  for (let sent = 0; sent < 3; sent++) expect(await at.statusOf('a')).toBe(200);
  await using other = await start({ t: { requests_per_minute: 1 } });
  for (let sent = 0; sent < 3; sent++) expect(await other.statusOf('c')).toBe(200);
});

test('the fields tell the tighter limit, and a refusal by the tenant costs the client nothing', async () => {
  await using at = await start(
    { t: { requests_per_minute: 3, max_inflight: 1 } },
    { ofA: { requests_per_minute: 2, max_inflight: 5 } },
  );
  at.replica.answerOnce(hang);
  const leaving = new AbortController();
  const running = at.gateway.chat({}, { ...withKey('b'), signal: leaving.signal }).catch(() => null);
  await at.replica.untilRequests(1);
  const refused = await at.gateway.chat({}, withKey('a'));
  expect(refused.status).toBe(429);
  expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('2');
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('2');
  leaving.abort();
  await running;
  await at.gateway.waitForRecords(2);
  const admitted = await at.gateway.chat({}, withKey('a'));
  expect(admitted.status).toBe(200);
  expect(admitted.headers.get('x-ratelimit-remaining-requests')).toBe('1');
  await admitted.text();
});

test('a reload changes the limits, keeps what was used, and takes them away', async () => {
  await using at = await start({ t: { requests_per_minute: 1 } });
  const reload = async (limits: object) => {
    const clients = [clientOf('a', { tenant: 't' }), clientOf('b', { tenant: 't' })];
    at.gateway.writeConfig({ config: { clients, ...limits } });
    expect((await at.gateway.reload()).status).toBe(200);
  };
  expect([await at.statusOf('a'), await at.statusOf('b')]).toEqual([200, 429]);
  await reload({});
  expect(await at.statusOf('b')).toBe(200);
  await reload({ tenant_limits: { default: { requests_per_minute: 1 } } });
  expect(await at.statusOf('a')).toBe(429);
});

test('a request with the header of a trusted proxy counts for the tenant that it names', async () => {
  await using at = await start(
    { default: { requests_per_minute: 1 } },
    { gateway: { trusted_proxies: ['127.0.0.1'] } },
  );
  const sendFrom = async (localAddress: string, tenant: string) => {
    const headers = { 'x-api-key': 'a', 'X-Tenant': tenant };
    const sent = request(`${at.gateway.url}/v1/chat/completions`, { method: 'POST', localAddress, headers });
    sent.end(JSON.stringify({ model: 'm', messages: [] }));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  };
  expect([await sendFrom('127.0.0.1', 'x'), await sendFrom('127.0.0.1', 'x')]).toEqual([200, 429]);
  expect(await sendFrom('127.0.0.1', 'y')).toBe(200);
  expect([await sendFrom('127.0.0.2', 'v'), await sendFrom('127.0.0.2', 'w')]).toEqual([200, 429]);
});
