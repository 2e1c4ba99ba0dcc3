import { createHmac, KeyObject, sign } from 'node:crypto';
import { exportJWK, exportSPKI, SignJWT } from 'jose';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { type IssuerKey, makeKey } from '#testkit/servers/fake-issuer.ts';
import type { PublicJwk } from '../../../src/access/jwt/jwks.ts';
import { createJwtVerifier, type JwtFacts, type JwtRules } from '../../../src/access/jwt/verify-jwt.ts';

const ISSUER = 'https://issuer.example';
const RULES: JwtRules = {
  issuer: ISSUER,
  audience: ['first', 'second'],
  jwks: 'keys.json',
  algorithms: ['ES256', 'RS256'],
  tenantClaim: 'tenant',
  featureClaim: 'feature',
  modelsClaim: 'scope',
  clientClaim: 'azp',
  maxInflight: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
};

let key: IssuerKey;
let other: IssuerKey;

beforeAll(async () => {
  [key, other] = await Promise.all([makeKey('k1'), makeKey('k2')]);
  vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1000 });
  return () => vi.useRealTimers();
});

/** The time of all tests here: seconds since 1970. */
const NOW = 2_000_000_000;
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const claimsOf = (more: object = {}) => ({
  iss: ISSUER,
  aud: 'first',
  exp: NOW + 60,
  tenant: 'acme',
  ...more,
});

async function issue(claims: object = {}, header: object = {}, by = key): Promise<string> {
  const token = new SignJWT(claimsOf(claims)).setProtectedHeader({ alg: 'ES256', kid: by.kid, ...header });
  return await token.sign(by.pair.privateKey);
}

/** Signs a payload, and a header, that are written as they stand. */
function issueText(payload: string, header = JSON.stringify({ alg: 'ES256', kid: 'k1' })): string {
  const text = [header, payload].map((part) => Buffer.from(part).toString('base64url')).join('.');
  const options = {
    key: KeyObject.from(key.pair.privateKey as CryptoKey),
    dsaEncoding: 'ieee-p1363',
  } as const;
  return `${text}.${sign('sha256', Buffer.from(text), options).toString('base64url')}`;
}

const verify = (token: string, rules: Partial<JwtRules> = {}, keys: readonly IssuerKey[] = [key]) =>
  createJwtVerifier(
    { ...RULES, ...rules },
    keys.map(({ jwk }) => jwk as PublicJwk),
  )(token);

const tenantOf = async (token: string, rules: Partial<JwtRules> = {}) => {
  const verdict = await verify(token, rules);
  return typeof verdict === 'string' ? verdict : verdict.tenant;
};

describe('a token is valid', () => {
  test.each([
    ['for the first audience', { aud: 'first' }],
    ['for another audience of the configuration', { aud: 'second' }],
    ['for several audiences, one of which is meant', { aud: ['somebody', 'second'] }],
    ['when its end is less than the tolerance ago', { exp: NOW - 29 }],
    ['when it begins within the tolerance', { nbf: NOW + 30 }],
    ['whatever time it was issued at', { iat: NOW + 3600 }],
  ])('%s', async (_, claims) => {
    expect(await tenantOf(await issue(claims))).toBe('acme');
  });

  test('until its end, with the tolerance, in milliseconds', async () => {
    const exp = NOW + 100;
    expect(await verify(await issue({ exp }))).toMatchObject({ expiresAtMs: (exp + 30) * 1000 });
  });

  test('and has the name of its tenant that records have, by which limits count, too', async () => {
    expect(await tenantOf(await issue({ tenant: 'ac\u0000me\n' }))).toBe('acme');
  });

  test('and says what the last of two claims with the same name says, as JSON readers do', async () => {
    const text = JSON.stringify(claimsOf());
    expect(await tenantOf(issueText(text.replace('{', '{"tenant":"twice",')))).toBe('acme');
    expect(await tenantOf(issueText(text.replace(/}$/, ',"tenant":"twice"}')))).toBe('twice');
  });
});

describe('a token is refused', () => {
  test.each<[string, string, object]>([
    ['of another issuer', 'issuer', { iss: 'https://issuer.example.evil' }],
    ['of several issuers', 'issuer', { iss: [ISSUER] }],
    ['for nobody that is meant', 'audience', { aud: ['somebody', 'first '] }],
    ['for an audience in another case', 'audience', { aud: 'FIRST' }],
    ['that ended before the tolerance', 'expired', { exp: NOW - 30 }],
    ['whose end is a text', 'claims', { exp: String(NOW + 60) }],
    ['that begins after the tolerance', 'not_yet_valid', { nbf: NOW + 31 }],
    ['without a tenant', 'claims', { tenant: undefined }],
    ['with an empty tenant', 'claims', { tenant: '' }],
    ['with a blank tenant', 'claims', { tenant: ' \t' }],
    ['with a tenant of which nothing can be shown', 'claims', { tenant: '\u0000 \u202e' }],
    ['with a list of tenants', 'claims', { tenant: ['acme'] }],
    ['with a tenant that is a number', 'claims', { tenant: 7 }],
    ['with a tenant of 257 characters', 'claims', { tenant: 'x'.repeat(257) }],
  ])('%s', async (_, reason, claims) => {
    expect(await tenantOf(issueText(JSON.stringify(claimsOf(claims))))).toBe(reason);
  });

  test('without an end', async () => {
    expect(await verify(await issue({ exp: undefined }))).toBe('claims');
  });

  test('with a signature of zeros, of another key, or under the name of another key', async () => {
    const [head, payload] = (await issue()).split('.');
    expect(await verify(`${head}.${payload}.${Buffer.alloc(64).toString('base64url')}`)).toBe('signature');
    expect(await verify(await issue({}, { kid: 'k1' }, other))).toBe('signature');
    expect(await verify(await issue({}, { kid: 'k2' }), {}, [key, other])).toBe('signature');
    expect(await verify(await issue({}, { kid: 'k9' }))).toBe('unknown_key');
    expect(await verify(await issue({}, { kid: undefined }), {}, [key, other])).toBe('ambiguous_key');
  });

  test.each(['none', 'None', 'NONE', 'HS256', 'es256', '', 'ES384', 'ES256K', '__proto__'])(
    'with the algorithm %j, whatever its signature',
    async (alg) => {
      const text = `${base64url({ alg, kid: 'k1' })}.${base64url(claimsOf())}`;
      const secrets = [JSON.stringify(key.jwk), await exportSPKI(key.pair.publicKey), ''];
      const signatures = secrets.map((secret) =>
        createHmac('sha256', secret).update(text).digest('base64url'),
      );
      for (const signature of signatures) {
        expect(await tenantOf(`${text}.${signature}`)).toMatch(/^(algorithm|malformed|unknown_key)$/);
      }
    },
  );

  test('with an algorithm that the configuration does not name, or that is not that of the key', async () => {
    const rsa = await makeKey('k1', 'RS256');
    const token = await issue({}, { alg: 'RS256' }, rsa);
    expect(await verify(token, { algorithms: ['ES256'] }, [rsa])).toBe('algorithm');
    expect(await verify(token, {}, [key])).toBe('unknown_key');
    expect(await verify(await issue({}, { alg: 'PS256' }, await makeKey('k1', 'PS256')))).toBe('algorithm');
  });

  test('by a key of the set that cannot be used', async () => {
    // Its point is not on the curve.
    const off = { ...key, jwk: { ...key.jwk, x: (other.jwk as { x: string }).x } };
    expect(await verify(await issue(), {}, [off])).toBe('unusable_key');
  });

  test('with a key of its own, or an address of one', async () => {
    const jwk = await exportJWK(other.pair.publicKey);
    const token = await issue({}, { kid: undefined, jwk }, other);
    expect(await verify(token)).toBe('signature');
    expect(await verify(await issue({}, { kid: 'k9', jku: `${ISSUER}/keys.json` }, other))).toBe(
      'unknown_key',
    );
  });

  test.each([
    ['that nobody knows', { crit: ['x-new'], 'x-new': 1 }],
    ['that is not there', { crit: ['exp'] }],
    ['in an empty list', { crit: [] }],
    ['for a payload that is not encoded', { crit: ['b64'], b64: false }],
  ])('with an extension %s', async (_, more) => {
    const header = JSON.stringify({ alg: 'ES256', kid: 'k1', ...more });
    expect(await tenantOf(issueText(JSON.stringify(claimsOf()), header))).toMatch(
      /^(algorithm|malformed|signature)$/,
    );
  });

  test.each(['', 'null', '[]', '7', '"x"', '{', `{"a":${'['.repeat(5000)}`])(
    'with the payload %j',
    async (payload) => {
      expect(await tenantOf(issueText(payload))).toMatch(/^(malformed|claims)$/);
    },
  );
});

describe('claims', () => {
  const facts = async (claims: object, rules: Partial<JwtRules> = {}) =>
    (await verify(await issue(claims), rules)) as JwtFacts;

  test('are each read under the name that the configuration gives', async () => {
    const claims = { feature: 'rag', azp: 'portal', scope: 'm', sub: 's' };
    expect(await facts(claims)).toMatchObject({
      tenant: 'acme',
      feature: 'rag',
      client: 'portal',
      models: ['m'],
    });
    const none = { featureClaim: null, clientClaim: null, modelsClaim: null };
    expect(await facts(claims, none)).toMatchObject({ feature: null, client: null, models: null });
    expect(await facts(claims, { tenantClaim: 'sub' })).toMatchObject({ tenant: 's' });
  });

  test('may have dots in their names, or stand inside of others, in this order', async () => {
    const rules = { tenantClaim: 'org.id' };
    expect((await facts({ org: { id: 'inner' } }, rules)).tenant).toBe('inner');
    expect((await facts({ org: { id: 'inner' }, 'org.id': 'whole' }, rules)).tenant).toBe('whole');
  });

  test.each(['constructor.name', '__proto__.x', 'tenant.length', 'toString'])(
    'are only what the token has itself: %s',
    async (tenantClaim) => {
      expect(await verify(await issue(), { tenantClaim })).toBe('claims');
    },
  );

  test.each<[string, unknown, readonly string[] | null]>([
    ['a text', 'm other', ['m', 'other']],
    ['a text with commas', 'm,other', ['m,other']],
    ['a list', ['m', 7, '', null], ['m']],
    ['a star in a list', ['m', '*'], null],
    ['a star within a name', 'm*', ['m*']],
    ['nothing', undefined, []],
    ['an empty text', '', []],
    ['true', true, []],
    ['an object', { m: true }, []],
  ])('of models may be %s', async (_, scope, models) => {
    expect((await facts({ scope })).models).toEqual(models);
  });
});
