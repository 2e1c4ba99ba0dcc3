import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type FakeIssuer, type IssuerKey, makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { parseJwks } from '../../../src/access/jwt/jwks.ts';
import { readJwks } from '../../../src/access/jwt/read-jwks.ts';

let key: IssuerKey;
let issuer: FakeIssuer;
let directory: string;

beforeAll(async () => {
  key = await makeKey('k1');
  issuer = await startIssuer(key);
  directory = await mkdtemp(join(tmpdir(), 'spangate-jwks-'));
});

afterAll(async () => {
  await Promise.all([issuer[Symbol.asyncDispose](), rm(directory, { recursive: true })]);
});

describe('a server of keys is refused, with a reason that quotes nothing, if it answers', () => {
  const canary = 'canaryqzxwvkjp';
  test.each<[string, Parameters<FakeIssuer['answerWith']>[0], string]>([
    ['with another status', (response) => response.writeHead(404).end(canary), 'status 404'],
    ['with no JSON', (response) => response.end(`{"keys":[${canary}`), 'not a JSON Web Key Set'],
    ['with a list', (response) => response.end('[]'), 'not a JSON Web Key Set'],
    ['without keys', (response) => response.end('{"keys":[]}'), 'no key that verifies tokens'],
    [
      'with a secret',
      (response) => response.end('{"keys":[{"kty":"oct","k":"AAAA"}]}'),
      'no key that verifies tokens',
    ],
    ['with 300 KB', (response) => response.end(`{"keys":[]}${' '.repeat(300_000)}`), 'more than 256 KiB'],
    [
      'without end',
      (response) => {
        const more = () => {
          while (response.write('x'.repeat(60_000)));
        };
        response.on('drain', more);
        more();
      },
      'more than 256 KiB',
    ],
    [
      'with half of it',
      (response) => response.writeHead(200, { 'Content-Length': 99 }).write('{', () => response.destroy()),
      'UND_ERR_SOCKET',
    ],
    ['with nothing', (response) => response.destroy(), 'UND_ERR_SOCKET'],
  ])('%s', async (_, listener, reason) => {
    issuer.answerWith(listener);
    await expect(readJwks(issuer.jwksUrl)).rejects.toThrow(new RegExp(`^${reason}$`));
  });

  test.each([301, 302, 303, 307, 308])('with the redirect %d, which is not followed', async (status) => {
    // Behind it are keys: whoever can have the gateway sent there could sign tokens.
    const text = JSON.stringify({ keys: [key.jwk] });
    await using other = await startIssuer(key);
    for (const location of ['/else', other.jwksUrl]) {
      issuer.answerWith((response) => {
        if (response.req.url === '/else') response.end(text);
        else response.writeHead(status, { Location: location }).end(text);
      });
      const asked = issuer.requestCount;
      await expect(readJwks(issuer.jwksUrl)).rejects.toThrow(new RegExp(`^status ${status}$`));
      expect([issuer.requestCount - asked, other.requestCount]).toEqual([1, 0]);
    }
  });

  test('on no port', async () => {
    await expect(readJwks(`http://127.0.0.9:${await findFreePort()}/`)).rejects.toThrow('ECONNREFUSED');
  });

  test.each<[string, Parameters<FakeIssuer['answerWith']>[0]]>([
    ['never', () => undefined],
    ['with half of it, and then no more', (response) => response.writeHead(200).write('{"keys":')],
  ])(
    '%s: it is given up after 5 s',
    async (_, listener) => {
      issuer.answerWith(listener);
      await expect(readJwks(issuer.jwksUrl)).rejects.toThrow('no answer in time');
    },
    20_000,
  );
});

test('a file is read if it is one', async () => {
  const path = join(directory, 'jwks.json');
  await expect(readJwks(path)).rejects.toThrow('ENOENT');
  await expect(readJwks(directory)).rejects.toThrow('not a file');
  await writeFile(path, JSON.stringify({ keys: [key.jwk] }));
  expect((await readJwks(path)).keys).toHaveLength(1);
  await writeFile(path, ' '.repeat(300_000));
  await expect(readJwks(path)).rejects.toThrow('more than 256 KiB');
});

describe('of a key set', () => {
  const rsa = { kty: 'RSA', n: 'AQAB', e: 'AQAB' };

  test('only the public members of keys that verify are kept', () => {
    const given = [
      { ...rsa, kid: 'a', alg: 'RS256', use: 'sig', d: 'secret', p: 'secret', x5c: ['MII'], other: {} },
      { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', key_ops: ['verify'] },
      { kty: 'OKP', crv: 'Ed25519', x: 'x', d: 'secret' },
    ];
    const parsed = parseJwks(JSON.stringify({ keys: given }));
    expect(parsed).toEqual({
      keys: [
        { ...rsa, kid: 'a', alg: 'RS256' },
        { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' },
        { kty: 'OKP', crv: 'Ed25519', x: 'x' },
      ],
      ignoredCount: 0,
    });
  });

  test.each([
    ['a symmetric one', { kty: 'oct', k: 'AAAA' }],
    ['one for encryption', { ...rsa, use: 'enc' }],
    ['one for signing', { ...rsa, key_ops: ['sign'] }],
    ['one without a modulus', { kty: 'RSA', e: 'AQAB' }],
    ['one with a number as modulus', { ...rsa, n: 7 }],
    ['one with a list as name', { ...rsa, kid: ['a'] }],
    ['one whose modulus has 16,384 bits', { ...rsa, n: 'A'.repeat(2731) }],
    ['one whose exponent is long', { ...rsa, e: 'A'.repeat(100) }],
    ['one of an unknown type', { kty: '__proto__' }],
    ['null', null],
    ['a text', 'RSA'],
  ])('keys that are of no use are left out: %s', (_, unusable) => {
    expect(parseJwks(JSON.stringify({ keys: [unusable, rsa] }))).toEqual({ keys: [rsa], ignoredCount: 1 });
  });

  test('more than 100 keys are none', () => {
    expect(parseJwks(JSON.stringify({ keys: Array(101).fill(rsa) }))).toBeNull();
    expect(parseJwks(`${'['.repeat(100_000)}`)).toBeNull();
  });
});
