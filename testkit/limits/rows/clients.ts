import { hash } from 'node:crypto';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readClients } from '#access/clients';
import { createJwtVerifier, JwtClients, readJwks } from '#access/jwt';
import type { Config } from '#config';
import type { PublicJwk } from '../../../src/access/jwt/jwks.ts';
import { parseJwks } from '../../../src/access/jwt/jwks.ts';
import { AUDIENCE, makeKey, startIssuer } from '../../servers/fake-issuer.ts';
import { inFile, type Limit, testedBy } from '../limit.ts';

interface ProbedJwtClients extends AsyncDisposable {
  issue(claims: Readonly<Record<string, unknown>>): Promise<string>;
  /** The tenant of a token, or the reason for which it is refused. */
  identify(token: string): Promise<string>;
}

async function startJwtClients(): Promise<ProbedJwtClients> {
  const key = await makeKey('k');
  const issuer = await startIssuer(key);
  const outcomes: string[] = [];
  const clients = new JwtClients(
    {
      issuer: issuer.issuer,
      audience: [AUDIENCE],
      jwks: issuer.jwksUrl,
      algorithms: ['ES256'],
      maxInflight: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
      tenantClaim: 'tenant',
      featureClaim: null,
      modelsClaim: null,
      clientClaim: null,
    },
    {
      toClient: ({ tenant }) => outcomes.push(tenant),
      refreshKeys: async () => undefined,
      clientMs: 600_000,
      createVerifier: createJwtVerifier,
      onRefused: (reason) => outcomes.push(reason),
    },
  );
  clients.useKeys({ source: issuer.jwksUrl, keys: [key.jwk as PublicJwk] });
  return {
    issue: (claims) => issuer.issue(key, claims),
    async identify(token) {
      await clients.identify(token, hash('sha256', token));
      return outcomes.join();
    },
    [Symbol.asyncDispose]: () => issuer[Symbol.asyncDispose](),
  };
}

const RSA = { kty: 'RSA', n: 'AQAB', e: 'AQAB' };
const keysOf = (keys: readonly object[]) => parseJwks(JSON.stringify({ keys }))?.keys.length ?? 'no key set';

/** API keys, tokens and what they may use. */
export const CLIENTS: readonly Limit[] = [
  {
    what: 'a token (JWT)',
    source: inFile('src/access/jwt/jwt-clients.ts', 'MAX_TOKEN_CHARS'),
    past: '401 `invalid_api_key`',
    proof: {
      send: async (size) => {
        await using jwt = await startJwtClients();
        const token = `${'a'.repeat(size - 4)}.b.c`;
        return await jwt.identify(token);
      },
      // Both are refused; only the longer one unread.
      at: 'malformed',
      past: 'too_long',
    },
  },
  {
    what: 'verified tokens remembered, per thread',
    source: inFile('src/access/jwt/jwt-clients.ts', 'MAX_KNOWN'),
    past: 'the oldest is verified again',
    proof: testedBy(
      'test/access/jwt/jwt-clients.test.ts',
      'the memory of tokens is bounded: the oldest is verified again',
    ),
  },
  {
    what: 'a key set (JWKS)',
    source: inFile('src/access/jwt/read-jwks.ts', 'MAX_JWKS_BYTES'),
    past: 'the keys in force stay; one log line',
    proof: {
      send: async (size) => {
        await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-limits-'));
        const path = join(folder.path, 'jwks.json');
        await writeFile(path, JSON.stringify({ keys: [RSA] }).padEnd(size));
        return await readJwks(path).then(
          ({ keys }) => `${keys.length} key`,
          (error: Error) => error.message,
        );
      },
      at: '1 key',
      past: 'more than 256 KiB',
    },
  },
  {
    what: 'the keys in a set',
    source: inFile('src/access/jwt/jwks.ts', 'MAX_KEYS'),
    past: 'it is not a key set',
    proof: {
      send: async (size) => String(keysOf(Array(size).fill(RSA))),
      at: '100',
      past: 'no key set',
    },
  },
  {
    what: 'the modulus of an RSA key, as base64url (8,192 bits)',
    source: inFile('src/access/jwt/jwks.ts', 'MAX_MODULUS_CHARS'),
    past: 'the key is not used',
    proof: {
      send: async (size) => String(keysOf([{ ...RSA, n: 'A'.repeat(size) }])),
      at: '1',
      past: '0',
    },
  },
  {
    what: 'the exponent of an RSA key, as base64url',
    source: inFile('src/access/jwt/jwks.ts', 'MAX_EXPONENT_CHARS'),
    past: 'the key is not used',
    proof: {
      send: async (size) => String(keysOf([{ ...RSA, e: 'A'.repeat(size) }])),
      at: '1',
      past: '0',
    },
  },
  {
    what: 'the text of a claim: tenant, feature, client',
    source: inFile('src/access/jwt/verify-jwt.ts', 'MAX_TEXT_CHARS'),
    past: 'as if the claim were missing: without a tenant 401 `invalid_api_key`',
    proof: {
      send: async (size) => {
        await using jwt = await startJwtClients();
        const found = await jwt.identify(await jwt.issue({ tenant: 't'.repeat(size) }));
        return found.replace(/^t+$/, ({ length }) => `${length}`);
      },
      at: '256',
      past: 'claims',
    },
  },
  {
    what: 'clients with limits',
    source: inFile('src/access/limits/client-limit-table.ts', 'MAX_LIMITED_CLIENTS'),
    past: 'the start or reload is refused',
    proof: {
      send: async (size) => {
        const client = { maxInflight: 1 } as NonNullable<Config['clients']>[number];
        return await readClients({ clients: Array(size).fill(client), clientsFile: null }).then(
          ({ clients }) => `${clients?.length} clients`,
          (error: Error) => error.message,
        );
      },
      at: '131072 clients',
      past: 'clients: 131073 have limits, but only 131072 can',
    },
  },
  {
    what: 'tenants counted separately',
    source: inFile('src/access/limits/limit-rows.ts', 'MAX_TENANTS'),
    past: 'others share one count, except those in `tenant_limits`, until one has been idle for half an hour',
    proof: testedBy(
      'test/access/limits/limit-rows.test.ts',
      'tenants beyond the bound share a row, but not those with limits of their own, until others are idle',
    ),
  },
  {
    what: 'what one answer can cost a client, as time of its token budget',
    source: inFile('src/access/limits/budget.ts', 'MAX_OVERDRAWN_NS'),
    unit: 'ns',
    past: 'the rest is free',
    proof: testedBy('test/access/limits/admission.test.ts', 'what an engine reports costs an hour at most'),
  },
];
