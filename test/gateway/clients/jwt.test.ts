import { createHash, createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untilCondition, untilOver } from '#testkit/conditions.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { closeAndCollectTexts } from '#testkit/reading/shown-texts.ts';
import {
  AUDIENCE,
  type FakeIssuer,
  type IssuerKey,
  makeKey,
  startIssuer,
} from '#testkit/servers/fake-issuer.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const API_KEY = 'sk-of-a-client-0123456789';
const CLIENTS = [{ name: 'batch', key_sha256: createHash('sha256').update(API_KEY).digest('hex') }];

let key: IssuerKey;
let issuer: FakeIssuer;
let replica: FakeReplica;
let gateway: StartedGateway;

const jwtOf = (of: FakeIssuer, more: object = {}) => ({
  issuer: of.issuer,
  audience: [AUDIENCE, 'other'],
  jwks: of.jwksUrl,
  tenant_claim: 'tenant',
  feature_claim: 'feature',
  models_claim: 'scope',
  client_claim: 'azp',
  ...more,
});

beforeAll(async () => {
  key = await makeKey('k1');
  issuer = await startIssuer(key);
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, models: ['m', 'other'], api_key: 'replica-key' }],
    config: { clients: CLIENTS, jwt: jwtOf(issuer), log: { requests: true } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close(), issuer[Symbol.asyncDispose]()]);
});

const bearer = (token: string, headers: object = {}) => ({
  headers: { Authorization: `Bearer ${token}`, ...headers },
});
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const nowS = () => Math.floor(Date.now() / 1000);

describe('a request with a valid token', () => {
  test('is recorded with what its claims say, and the replica does not see the token', async () => {
    const token = await issuer.issue(key, { feature: 'rag', azp: 'portal', scope: 'm openid' });
    for (const headers of [{ Authorization: `Bearer ${token}` }, { 'x-api-key': token }]) {
      const response = await gateway.chat(
        {},
        { headers: { ...headers, 'X-Tenant': 'claimed', 'X-Feature': 'own' } },
      );
      expect(response.status).toBe(200);
      expect(await gateway.nextRecord()).toMatchObject({ tenant: 'acme', feature: 'rag', client: 'portal' });
      const received = await replica.nextRequest();
      expect(received.header('authorization')).toEqual(['Bearer replica-key']);
      expect(received.header('x-api-key')).toEqual([]);
      expect(received.header('x-tenant')).toEqual([]);
    }
  });

  test('takes the feature from the header where the token has none, and may have claims inside of claims', async () => {
    const jwt = jwtOf(issuer, { tenant_claim: 'org.id', client_claim: undefined, models_claim: undefined });
    await using other = await startGateway({ replicas: [replica], config: { jwt } });
    const token = await issuer.issue(key, { org: { id: 'inner' } });
    expect((await other.chat({}, bearer(token, { 'X-Feature': 'own' }))).status).toBe(200);
    const record = await other.nextRecord();
    expect(record).toMatchObject({ tenant: 'inner', feature: 'own' });
    expect(record).not.toHaveProperty('client');
    await replica.nextRequest();
  });

  test.each([
    ['a text', 'm openid', { m: 200, other: 404 }],
    ['a list', ['other', 7, null], { m: 404, other: 200 }],
    ['a star', ['*'], { m: 200, other: 200 }],
    ['nothing', undefined, { m: 404, other: 404 }],
    ['something else', { m: true }, { m: 404, other: 404 }],
  ])('may use the models of its claim: %s', async (_, scope, statuses) => {
    const token = await issuer.issue(key, { scope });
    for (const [model, status] of Object.entries(statuses)) {
      expect((await gateway.chat({ model }, bearer(token))).status).toBe(status);
      await gateway.nextRecord();
      if (status === 200) await replica.nextRequest();
    }
    const listed = await (await fetch(`${gateway.url}/v1/models`, bearer(token))).json();
    const served = Object.entries(statuses).filter(([, status]) => status === 200);
    if (scope === undefined || !String(scope).includes('*')) {
      expect(listed).toMatchObject({ data: served.map(([id]) => ({ id })) });
    } else {
      await replica.nextRequest();
    }
  });

  test.each(['RS256', 'PS256', 'ES384', 'EdDSA'])('may be signed with %s', async (alg) => {
    const own = await makeKey('own', alg);
    await using other = await startIssuer(key, own);
    await using at = await startGateway({ replicas: [replica], config: { jwt: jwtOf(other) } });
    expect((await at.chat({}, bearer(await other.issue(own, { scope: '*' })))).status).toBe(200);
    await replica.nextRequest();
  });

  test('has no kid if only one key fits', async () => {
    const token = await issuer.issue(key, { scope: '*' }, { kid: undefined });
    expect((await gateway.chat({}, bearer(token))).status).toBe(200);
    await gateway.nextRecord();
    await replica.nextRequest();
  });

  test('and one with an API key are accepted side by side', async () => {
    expect((await gateway.chat({}, bearer(API_KEY))).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ client: 'batch', tenant: 'batch' });
    await replica.nextRequest();
  });
});

describe('a token that is not valid is refused like a wrong key, and no replica sees it', () => {
  const cases: readonly [string, () => Promise<string> | string][] = [
    ['expired', () => issuer.issue(key, { exp: nowS() - 60 })],
    ['without an end', () => issuer.issue(key, { exp: undefined })],
    ['not valid yet', () => issuer.issue(key, { nbf: nowS() + 60 })],
    ['of another issuer', () => issuer.issue(key, { iss: `${issuer.issuer}/` })],
    ['without an issuer', () => issuer.issue(key, { iss: undefined })],
    ['for another audience', () => issuer.issue(key, { aud: 'somebody' })],
    ['without an audience', () => issuer.issue(key, { aud: undefined })],
    ['without a tenant', () => issuer.issue(key, { tenant: undefined })],
    ['with a tenant that is no text', () => issuer.issue(key, { tenant: { $ne: '' } })],
    ['with a tenant of 300 characters', () => issuer.issue(key, { tenant: 'x'.repeat(300) })],
    ['signed with a key that only has the right name', async () => issuer.issue(await makeKey('k1'))],
    [
      'with a changed claim',
      async () => {
        const [head, , signature] = (await issuer.issue(key)).split('.');
        const payload = { iss: issuer.issuer, aud: AUDIENCE, exp: nowS() + 60, tenant: 'other' };
        return `${head}.${base64url(payload)}.${signature}`;
      },
    ],
    [
      'unsigned',
      () => {
        const payload = { iss: issuer.issuer, aud: AUDIENCE, exp: nowS() + 60, tenant: 'acme' };
        return `${base64url({ alg: 'none' })}.${base64url(payload)}.`;
      },
    ],
    [
      'unsigned, with a signature',
      () => {
        const payload = { iss: issuer.issuer, aud: AUDIENCE, exp: nowS() + 60, tenant: 'acme' };
        return `${base64url({ alg: 'none', kid: 'k1' })}.${base64url(payload)}.AAAA`;
      },
    ],
    [
      'signed with the public key as a shared secret',
      () => {
        const payload = { iss: issuer.issuer, aud: AUDIENCE, exp: nowS() + 60, tenant: 'acme' };
        const text = `${base64url({ alg: 'HS256', kid: 'k1' })}.${base64url(payload)}`;
        return `${text}.${createHmac('sha256', JSON.stringify(key.jwk)).update(text).digest('base64url')}`;
      },
    ],
    [
      'with an extension that must be understood',
      () => {
        const header = { alg: key.alg, kid: key.kid, crit: ['x-new'], 'x-new': 1 };
        const payload = { iss: issuer.issuer, aud: AUDIENCE, exp: nowS() + 60, tenant: 'acme' };
        const options = { crit: { 'x-new': true } };
        return new SignJWT(payload).setProtectedHeader(header).sign(key.pair.privateKey, options);
      },
    ],
    ['of 20,000 characters', () => issuer.issue(key, { groups: 'x'.repeat(15_000) })],
    ['of three words', () => 'a.b.c'],
    ['of five parts', () => 'a.b.c.d.e'],
    ['of deep JSON', () => `${Buffer.from('['.repeat(9000)).toString('base64url')}.e30.AAAA`],
  ];

  test.each(cases)('%s', async (_, make) => {
    const seen = replica.requests.length;
    const response = await gateway.chat({}, bearer(await make(), { 'X-Tenant': 'claimed' }));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await response.json()).toMatchObject({
      error: { type: 'invalid_request_error', param: null, code: 'invalid_api_key' },
    });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 401, error_type: 'invalid_api_key' });
    expect(record).not.toHaveProperty('tenant');
    expect(record).not.toHaveProperty('client');
    expect(replica.requests).toHaveLength(seen);
  });

  test('with an algorithm that the configuration does not name', async () => {
    await using other = await startGateway({
      replicas: [replica],
      config: { jwt: jwtOf(issuer, { algorithms: ['RS256'] }) },
    });
    expect((await other.chat({}, bearer(await issuer.issue(key, { scope: '*' })))).status).toBe(401);
  });

  test('without kid, if several keys fit', async () => {
    await using other = await startIssuer(key, await makeKey('k2'));
    await using at = await startGateway({ replicas: [replica], config: { jwt: jwtOf(other) } });
    const token = await other.issue(key, { scope: '*' }, { kid: undefined });
    expect((await at.chat({}, bearer(token))).status).toBe(401);
  });

  test('and the OpenAI client throws its own error for it', async () => {
    const apiKey = await issuer.issue(key, { exp: nowS() - 60 });
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
    await expect(openai.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });
});

describe('the keys of the issuer', () => {
  test('are read again for a token with an unknown key, which then succeeds; for further ones they are not', async () => {
    await using rotating = await startIssuer(key);
    await using at = await startGateway({ replicas: [replica], config: { jwt: jwtOf(rotating) } });
    const old = await rotating.issue(key, { scope: '*' });
    expect((await at.chat({}, bearer(old))).status).toBe(200);
    const next = await makeKey('k2');
    rotating.publish(next);
    const token = await rotating.issue(next, { scope: '*' });
    const answers = await Promise.all(Array.from({ length: 20 }, () => at.chat({}, bearer(token))));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(rotating.requestCount).toBe(2);
    // The former key is not in the set any more: a token that was verified with it before is not valid either.
    expect((await at.chat({}, bearer(old))).status).toBe(401);
    for (let index = 0; index < 20; index++) {
      const made = await rotating.issue(await makeKey(`made-up-${index}`), { scope: '*' });
      expect((await at.chat({}, bearer(made))).status).toBe(401);
    }
    expect(rotating.requestCount).toBe(2);
    await at.waitForRecords(42);
  });

  test('may be out of reach at the start: tokens get 503, clients with keys are served, and it ends by itself', async () => {
    await using down = await startIssuer(key);
    down.answerWith((response) => response.writeHead(500).end('broken'));
    await using at = await startGateway({
      replicas: [replica],
      config: { clients: CLIENTS, jwt: jwtOf(down, { models_claim: undefined }) },
    });
    const token = await down.issue(key);
    const refused = await at.chat({}, bearer(token));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await refused.json()).toMatchObject({ error: { type: 'server_error', code: 'keys_unavailable' } });
    expect(await at.nextRecord()).toMatchObject({ status: 503, error_type: 'keys_unavailable' });
    expect((await at.chat({}, bearer(API_KEY))).status).toBe(200);
    expect((await fetch(`${at.url}/healthz`)).status).toBe(200);
    // No token causes a reading, while there are no keys: they are read again every few seconds.
    for (let count = 0; count < 30; count++) expect((await at.chat({}, bearer(token))).status).toBe(503);
    expect(down.requestCount).toBeLessThan(15);
    expect(await untilCondition(at, 'jwks_missing')).toMatchObject({
      severity: 'critical',
      sentence: expect.stringMatching(/^all tokens get 503: .* status 500$/),
    });
    down.publish(key);
    await at.untilLogged('keys of JWTs read');
    await untilOver(at, 'jwks_missing');
    expect((await at.chat({}, bearer(token))).status).toBe(200);
  });

  test('stay as they were while they cannot be read', async () => {
    await using failing = await startIssuer(key);
    await using at = await startGateway({ replicas: [replica], config: { jwt: jwtOf(failing) } });
    failing.answerWith((response) => response.destroy());
    const unknown = await failing.issue(await makeKey('k9'), { scope: '*' });
    expect((await at.chat({}, bearer(unknown))).status).toBe(401);
    expect(failing.requestCount).toBeGreaterThanOrEqual(2);
    expect((await at.chat({}, bearer(await failing.issue(key, { scope: '*' })))).status).toBe(200);
    await at.untilLogged('the former keys stay in use');
  });

  test('may have one that cannot be used: its tokens get 401, and those of the others are valid', async () => {
    const broken = await makeKey('k2');
    const jwk = { ...broken.jwk, x: (key.jwk as { x: string }).x };
    await using mixed = await startIssuer({ ...broken, jwk }, key);
    await using at = await startGateway({ replicas: [replica], config: { jwt: jwtOf(mixed) } });
    expect((await at.chat({}, bearer(await mixed.issue(broken, { scope: '*' })))).status).toBe(401);
    expect((await at.chat({}, bearer(await mixed.issue(key, { scope: '*' })))).status).toBe(200);
    await replica.nextRequest();
  });

  test('may be in a file, which a reload reads again and refuses whole if it is broken', async () => {
    const path = join(gateway.stateDir, 'jwks.json');
    await writeFile(path, JSON.stringify({ keys: [key.jwk] }));
    const jwt = jwtOf(issuer, { jwks: path });
    await using at = await startGateway({ replicas: [replica], config: { jwt } });
    const next = await makeKey('k2');
    const token = await issuer.issue(next, { scope: '*' });
    expect((await at.chat({}, bearer(await issuer.issue(key, { scope: '*' })))).status).toBe(200);
    await writeFile(path, '{"keys":"none"}');
    expect((await at.reload()).status).toBe(422);
    expect((await at.chat({}, bearer(await issuer.issue(key, { scope: '*' })))).status).toBe(200);
    await writeFile(path, JSON.stringify({ keys: [next.jwk] }));
    expect((await at.reload()).status).toBe(200);
    expect((await at.chat({}, bearer(token))).status).toBe(200);
    await writeFile(path, '{"keys":[]}');
    await expect(startGateway({ replicas: [replica], config: { jwt } })).rejects.toThrow(
      /jwt\.jwks: cannot use/,
    );
  });
});

test('a reload changes the rules and their source, or begins and ends to accept tokens', async () => {
  await using second = await startIssuer(await makeKey('k1'));
  await using at = await startGateway({ replicas: [replica], config: { clients: CLIENTS } });
  const token = await issuer.issue(key, { scope: '*' });
  const reloadWith = async (config: NonNullable<StartGatewayOptions['config']>) => {
    at.writeConfig({ config });
    return (await at.reload()).status;
  };
  expect((await at.chat({}, bearer(token))).status).toBe(401);
  expect(await reloadWith({ clients: CLIENTS, jwt: jwtOf(issuer) })).toBe(200);
  expect((await at.chat({}, bearer(token))).status).toBe(200);
  expect(await reloadWith({ clients: CLIENTS, jwt: jwtOf(issuer, { jwks: second.jwksUrl }) })).toBe(200);
  expect((await at.chat({}, bearer(token))).status).toBe(401);
  second.answerWith((response) => response.writeHead(404).end());
  expect(await reloadWith({ jwt: jwtOf(issuer, { jwks: `${second.issuer}/else` }) })).toBe(422);
  expect((await at.chat({}, bearer(API_KEY))).status).toBe(200);
  expect(await reloadWith({ jwt: jwtOf(issuer) })).toBe(200);
  expect((await at.chat({}, bearer(token))).status).toBe(200);
  expect((await at.chat({}, bearer(API_KEY))).status).toBe(401);
  expect(await reloadWith({})).toBe(200);
  expect((await at.chat({})).status).toBe(200);
});

test.each([1, 2])('limits apply to each tenant, over all its tokens and %d workers', async (workers) => {
  const jwt = jwtOf(issuer, { requests_per_minute: 3, models_claim: undefined });
  await using at = await startGateway({ replicas: [replica], config: { gateway: { workers }, jwt } });
  const statuses: number[] = [];
  const told = new Set<string>();
  for (let index = 0; index < 8; index++) {
    const token = await issuer.issue(key, { jti: String(index), tenant: index === 7 ? 'other' : 'acme' });
    const response = await at.chat(
      {},
      { ...bearer(token), headers: { ...bearer(token).headers, Connection: 'close' } },
    );
    statuses.push(response.status);
    const { error } = (await response.json()) as { error?: { message: string } };
    if (error !== undefined) told.add(error.message.replace(/\. .*/, ''));
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 200]);
  expect([...told]).toEqual(['The tenant of the request has reached its limit of requests per minute (3)']);
});

test('tenant_limits count the tokens and the keys of a tenant together, beside the limits of tokens', async () => {
  const clients = [
    { name: 'k', key_sha256: createHash('sha256').update('key-of-acme').digest('hex'), tenant: 'acme' },
  ];
  const config = {
    clients,
    jwt: jwtOf(issuer, { requests_per_minute: 1, models_claim: undefined }),
    tenant_limits: { acme: { requests_per_minute: 2 } },
  };
  await using at = await startGateway({ replicas: [replica], config });
  const statusOf = async (token: string) => (await at.chat({}, bearer(token))).status;
  const [first, second] = [await issuer.issue(key, { jti: '1' }), await issuer.issue(key, { jti: '2' })];
  // The limit of tokens refuses the second one, which costs the tenant nothing.
  expect([await statusOf(first), await statusOf(second)]).toEqual([200, 429]);
  expect([await statusOf('key-of-acme'), await statusOf('key-of-acme')]).toEqual([200, 429]);
});

test('no token is in a record, a log line, a metric, an answer of the admin API or a file', async () => {
  const good = await issuer.issue(key, { scope: '*' });
  const bad = await issuer.issue(key, { exp: nowS() - 60, scope: '*' });
  for (const token of [good, bad]) await gateway.chat({}, bearer(token));
  const all = await closeAndCollectTexts(gateway);
  expect(all).toContain('acme');
  expect(all).toContain('expired');
  for (const token of [good, bad]) {
    for (const part of token.split('.')) expect(all).not.toContain(part);
    expect(all).not.toContain(createHash('sha256').update(token).digest('hex'));
  }
});
