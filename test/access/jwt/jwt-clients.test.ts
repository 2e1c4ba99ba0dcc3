import { hash } from 'node:crypto';
import { beforeAll, expect, test, vi } from 'vitest';
import {
  AUDIENCE,
  type FakeIssuer,
  type IssuerKey,
  makeKey,
  startIssuer,
} from '#testkit/servers/fake-issuer.ts';
import type { PublicJwk } from '../../../src/access/jwt/jwks.ts';
import { JwtClients } from '../../../src/access/jwt/jwt-clients.ts';
import { createJwtVerifier, type JwtFacts, type JwtVerifier } from '../../../src/access/jwt/verify-jwt.ts';

let key: IssuerKey;
let issuer: FakeIssuer;

beforeAll(async () => {
  key = await makeKey('k1');
  issuer = await startIssuer(key);
  return () => issuer[Symbol.asyncDispose]();
});

const keysOf = (...keys: readonly IssuerKey[]) => ({
  source: issuer.jwksUrl,
  keys: keys.map(({ jwk }) => jwk as PublicJwk),
});

interface ClientsOptions {
  readonly refreshKeys?: () => Promise<void>;
  /** Instead of one that verifies signatures. */
  readonly verify?: JwtVerifier;
  /** Whether a client can be made at the moment. */
  readonly canMake?: () => boolean;
}

function createClients({
  refreshKeys = async () => undefined,
  canMake = () => true,
  verify,
}: ClientsOptions = {}) {
  const refused: string[] = [];
  const made: JwtFacts[] = [];
  const clients = new JwtClients<JwtFacts>(
    {
      issuer: issuer.issuer,
      audience: [AUDIENCE],
      jwks: issuer.jwksUrl,
      algorithms: ['ES256'],
      tenantClaim: 'tenant',
      featureClaim: null,
      modelsClaim: null,
      clientClaim: null,
      maxInflight: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
    },
    {
      async toClient(facts) {
        made.push(facts);
        return canMake() ? facts : null;
      },
      refreshKeys,
      clientMs: 600_000,
      createVerifier: verify === undefined ? createJwtVerifier : () => verify,
      onRefused: (reason) => refused.push(reason),
    },
  );
  clients.useKeys(keysOf(key));
  const identify = (token: string) => clients.identify(token, hash('sha256', token));
  return { clients, identify, refused, made };
}

test('a token is verified once, also if it comes many times at once, and then known without waiting', async () => {
  const { identify, made } = createClients();
  const token = await issuer.issue(key);
  await Promise.all([identify(token), identify(token), identify(token)]);
  expect(made).toHaveLength(1);
  expect(identify(token)).toMatchObject({ tenant: 'acme' });
});

test('a known token ends when its time is over, with the tolerance', async () => {
  const { identify, refused } = createClients();
  const nowMs = Date.now();
  const token = await issuer.issue(key, { exp: Math.floor(nowMs / 1000) + 10 });
  await identify(token);
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs + 35_000 });
  try {
    expect(identify(token)).toMatchObject({ tenant: 'acme' });
    vi.setSystemTime(nowMs + 41_000);
    expect(await identify(token)).toBe('invalid_api_key');
  } finally {
    vi.useRealTimers();
  }
  expect(refused).toEqual(['expired']);
});

test('the client of a known token is made again when its time is over', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const { identify, made } = createClients();
    const token = await issuer.issue(key);
    await identify(token);
    vi.advanceTimersByTime(599_999);
    expect(identify(token)).toMatchObject({ tenant: 'acme' });
    vi.advanceTimersByTime(1);
    expect(await identify(token)).toMatchObject({ tenant: 'acme' });
    expect(made).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});

test('other keys end what the former ones verified, also what is being verified', async () => {
  const { clients, identify } = createClients();
  const [known, under] = [await issuer.issue(key), await issuer.issue(key, { jti: '2' })];
  await identify(known);
  const verifying = identify(under);
  clients.useKeys(keysOf(await makeKey('k2')));
  await verifying;
  expect(await identify(known)).toBe('invalid_api_key');
  expect(await identify(under)).toBe('invalid_api_key');
});

test('tokens with unknown keys wait for one reading together, and ask for no other one for a while', async () => {
  const asked = vi.fn<() => void>();
  const answered = Promise.withResolvers<void>();
  const { identify, refused } = createClients({
    refreshKeys: async () => {
      asked();
      await answered.promise;
    },
  });
  const unknown = await makeKey('k9');
  const tokens = await Promise.all(['1', '2', '3'].map((jti) => issuer.issue(unknown, { jti })));
  const answers = tokens.map((token) => identify(token));
  await expect.poll(() => asked).toHaveBeenCalled();
  answered.resolve();
  expect(await Promise.all(answers)).toEqual(['invalid_api_key', 'invalid_api_key', 'invalid_api_key']);
  expect(await identify(tokens[0] ?? '')).toBe('invalid_api_key');
  expect(asked).toHaveBeenCalledTimes(1);
  expect(refused).toEqual(Array(4).fill('unknown_key'));
});

test('a refusal is not remembered: the token is valid as soon as its key is known', async () => {
  const { clients, identify, refused } = createClients();
  const next = await makeKey('k2');
  const token = await issuer.issue(next);
  expect([await identify(token), await identify(token)]).toEqual(['invalid_api_key', 'invalid_api_key']);
  clients.useKeys({ source: issuer.jwksUrl, keys: null });
  expect(await identify(token)).toBe('keys_unavailable');
  clients.useKeys(keysOf(key, next));
  expect(await identify(token)).toMatchObject({ tenant: 'acme' });
  expect(refused).toEqual(['unknown_key', 'unknown_key', 'no_keys']);
});

test('a client that cannot be made at the moment is not remembered, and is made for the next request', async () => {
  let canMake = false;
  const { identify, made, refused } = createClients({ canMake: () => canMake });
  const token = await issuer.issue(key);
  expect([await identify(token), await identify(token)]).toEqual([
    'limits_unavailable',
    'limits_unavailable',
  ]);
  canMake = true;
  expect(await identify(token)).toMatchObject({ tenant: 'acme' });
  expect(identify(token)).toMatchObject({ tenant: 'acme' });
  expect(made).toHaveLength(3);
  expect(refused).toEqual([]);
});

test('what cannot be a token is refused without waiting, also while there are no keys', () => {
  const { clients, identify, refused } = createClients();
  for (const keys of [[key.jwk as PublicJwk], null]) {
    clients.useKeys({ source: issuer.jwksUrl, keys });
    expect(['sk-a-wrong-key', 'a.b', 'a.b.c.d.e', `a.b.${'c'.repeat(20_000)}`].map(identify)).toEqual(
      Array(4).fill('invalid_api_key'),
    );
  }
  const reasons = ['malformed', 'malformed', 'malformed', 'too_long'];
  expect(refused).toEqual([...reasons, ...reasons]);
});

test('the memory of tokens is bounded: the oldest is verified again', async () => {
  const facts = { client: null, tenant: 'acme', feature: null, models: null };
  const { clients, made } = createClients({
    verify: async () => ({ ...facts, expiresAtMs: Number.POSITIVE_INFINITY }),
  });
  const identify = (number: number) => clients.identify(`a.b.${number}`, String(number));
  for (let number = 0; number < 10_000; number++) await identify(number);
  expect(made).toHaveLength(10_000);
  expect(identify(0)).toMatchObject({ tenant: 'acme' });
  await identify(10_000);
  expect(identify(0)).toBeInstanceOf(Promise);
  expect(identify(1)).toMatchObject({ tenant: 'acme' });
  expect(identify(10_000)).toMatchObject({ tenant: 'acme' });
});
