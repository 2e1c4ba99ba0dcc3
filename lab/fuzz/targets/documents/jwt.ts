import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { createJwtVerifier } from '#access/jwt';
import { type PublicJwk, parseJwks } from '../../../../src/access/jwt/jwks.ts';
import type { JwtRules } from '../../../../src/access/jwt/verify-jwt.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const PAIR = generateKeyPairSync('ed25519');
const FOREIGN = generateKeyPairSync('ed25519');
const JWK = { ...PAIR.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'EdDSA', use: 'sig' };
const ISSUER = 'https://issuer.example';
const AUDIENCE = 'spangate';
const FAR_FUTURE_S = 4_000_000_000;
const RULES: JwtRules = {
  issuer: ISSUER,
  audience: [AUDIENCE],
  jwks: 'keys.json',
  algorithms: ['EdDSA', 'ES256', 'RS256'],
  tenantClaim: 'realm.tenant',
  featureClaim: 'feature',
  modelsClaim: 'models',
  clientClaim: null,
  maxInflight: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
};
const WORDS = [
  ...[
    'keys',
    'kty',
    'OKP',
    'RSA',
    'EC',
    'crv',
    'Ed25519',
    'x',
    'y',
    'n',
    'e',
    'd',
    'k',
    'oct',
    'kid',
    'k1',
    'alg',
  ],
  ...['use', 'sig', 'key_ops', 'verify', 'EdDSA', 'none', 'AQAB'],
];
const OWN_KEYS = parseJwks(JSON.stringify({ keys: [JWK] }))?.keys ?? [];
const ownVerifier = createJwtVerifier(RULES, OWN_KEYS);
const GOOD_TOKEN = token({ alg: 'EdDSA', kid: 'k1' }, claims({}), PAIR.privateKey);

/** Tokens, and the key sets of their issuer. */
export const JWT: FuzzTarget = {
  name: 'jwt',
  reads: 'tokens (JWT) and key sets (JWKS)',
  oracle:
    "a token is valid only if node:crypto verifies its signature with the issuer's key and JSON.parse finds its claims; no part of a private key is kept; whatever the keys are, verifying ends with an answer",
  variants: 2,
  ciInputs: 4_000,
  generate: (random, variant) => Buffer.from(variant === 0 ? anyToken(random) : keySet(random), 'utf8'),
  check({ bytes, variant }) {
    const text = bytes.toString();
    return variant === 0 ? checkToken(text) : checkKeys(text);
  },
  async read({ bytes, variant }) {
    const text = bytes.toString();
    if (variant === 0) return await ownVerifier(text);
    const parsed = parseJwks(text);
    if (parsed === null) return null;
    const verifier = createJwtVerifier(RULES, parsed.keys);
    return [verifier, await verifier(GOOD_TOKEN)];
  },
};

async function checkToken(text: string): Promise<boolean> {
  const facts = await ownVerifier(text);
  if (typeof facts === 'string') return false;
  const [head = '', payload = '', signature = '', ...rest] = text.split('.');
  const isSigned = verify(
    null,
    Buffer.from(`${head}.${payload}`),
    PAIR.publicKey,
    Buffer.from(signature, 'base64url'),
  );
  must(isSigned && rest.length === 0, 'a token that nobody has signed is valid');
  const said = JSON.parse(Buffer.from(payload, 'base64url').toString());
  mustEqual('the issuer', said.iss, ISSUER);
  must([said.aud].flat().includes(AUDIENCE), 'a token for another audience is valid');
  must(said.exp > Date.now() / 1000 - 60, 'a token that has expired is valid');
  mustEqual('the tenant', facts.tenant, said['realm.tenant'] ?? said.realm?.tenant);
  return true;
}

const PUBLIC_MEMBERS = new Set(['kty', 'n', 'e', 'crv', 'x', 'y', 'kid', 'alg']);

async function checkKeys(text: string): Promise<boolean> {
  const parsed = parseJwks(text);
  if (parsed === null) return false;
  for (const key of parsed.keys) {
    must(
      Object.keys(key).every((name) => PUBLIC_MEMBERS.has(name)),
      'a member is kept that no verification reads',
    );
  }
  const facts = await createJwtVerifier(RULES, parsed.keys)(GOOD_TOKEN);
  if (typeof facts !== 'string') must(parsed.keys.some(isOwnKey), 'a token is valid without its key');
  return typeof facts !== 'string';
}

function isOwnKey(key: PublicJwk): boolean {
  try {
    const { x } = createPublicKey({ key: { ...key }, format: 'jwk' }).export({ format: 'jwk' });
    return x === JWK.x;
  } catch {
    return false;
  }
}

function anyToken(random: Random): string {
  const header = random.chance(80)
    ? { alg: 'EdDSA', kid: 'k1' }
    : {
        alg: random.pick(['none', 'HS256', 'EdDSA', 'ES256', 'toString']),
        ...(random.chance(50) ? { kid: 'k2' } : {}),
        crit: ['b64'],
        b64: false,
      };
  const key = random.chance(85) ? PAIR.privateKey : FOREIGN.privateKey;
  return token(header, claims(oddClaims(random)), key);
}

function oddClaims(random: Random): object {
  const odd: Record<string, unknown> = {};
  const values = [0, -1, 1e300, '', 'x', null, [], {}, [AUDIENCE], true, { tenant: 'b' }, 'x'.repeat(300)];
  for (const name of [
    'iss',
    'aud',
    'exp',
    'nbf',
    'realm',
    'realm.tenant',
    'models',
    'feature',
    '__proto__',
  ]) {
    if (random.chance(6)) odd[name] = random.pick(values);
  }
  return odd;
}

function claims(odd: object): object {
  return { iss: ISSUER, aud: AUDIENCE, exp: FAR_FUTURE_S, realm: { tenant: 'acme' }, ...odd };
}

function token(header: object, payload: object, key: typeof PAIR.privateKey): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encode(header)}.${encode(payload)}`;
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`;
}

function keySet(random: Random): string {
  const keys = Array.from({ length: random.chance(97) ? random.below(4) : 100 + random.below(3) }, () => {
    if (random.chance(40)) return JSON.stringify(JWK);
    if (random.chance(40))
      return JSON.stringify({
        ...JWK,
        [random.pick(WORDS)]: random.pick(['AA', 'RSA', 7, null, ['verify'], 'x'.repeat(2000)]),
      });
    return jsonText(random, WORDS, 2);
  });
  return `{"keys":[${keys.join(',')}]}`;
}
