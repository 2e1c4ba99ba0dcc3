import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { invoke } from './invoke.ts';

let folder: string;
let authority: TestAuthority;
let server: IssuedCertificate;
let other: IssuedCertificate;
let replica: FakeReplica;

beforeAll(async () => {
  [folder, authority] = await Promise.all([
    mkdtemp(join(tmpdir(), 'spangate-check-tls-')),
    createAuthority(),
  ]);
  [server, other] = await Promise.all([authority.issue('server'), authority.issue('other')]);
  const tls = { ...server, requestCert: true, rejectUnauthorized: true, ca: authority.ca.cert };
  replica = await startFakeReplica({ tls });
});

afterAll(async () => {
  await Promise.all([authority, replica].map((each) => each[Symbol.asyncDispose]()));
  await rm(folder, { recursive: true });
});

/** Runs `check` for a configuration with these settings of TLS. */
async function check(
  { gateway = {}, toReplica }: { readonly gateway?: object; readonly toReplica?: object },
  ...options: readonly string[]
) {
  const path = join(folder, 'gateway.yaml');
  const replicas = [{ name: 'a', url: replica.url, ...(toReplica && { tls: toReplica }) }];
  await writeFile(path, JSON.stringify({ gateway, replicas, health: {}, export: { to: 'file' } }));
  return await invoke(['check', '-config', path, ...options]);
}

afterEach(() => void vi.useRealTimers());

const pathsOf = ({ certPath, keyPath }: IssuedCertificate) => ({ cert: certPath, key: keyPath });

describe('gateway check', () => {
  it('accepts certificates that the gateway can use', async () => {
    const toReplica = { ca: authority.ca.certPath, ...pathsOf(other) };
    const gateway = { tls: pathsOf(server), admin_tls: pathsOf(other) };
    expect(await check({ gateway, toReplica })).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it.each([
    [
      'a certificate that is missing',
      () => ({ gateway: { tls: { ...pathsOf(server), cert: 'nowhere.pem' } } }),
      /gateway\.tls\.cert: cannot read .*nowhere\.pem \(ENOENT\)/,
    ],
    [
      'a key of another certificate',
      () => ({ gateway: { admin_tls: { ...pathsOf(server), key: other.keyPath } } }),
      /gateway\.admin_tls: .*the key does not belong to the certificate/,
    ],
    [
      'an authority of a replica that is not PEM',
      () => ({ toReplica: { ca: '/dev/null' } }),
      /replicas: a: tls: .*this is not PEM/,
    ],
  ])('reports %s', async (_, toSettings, message) => {
    for (const options of [[], ['--connect']]) {
      const { exitCode, stdout, stderr } = await check(toSettings(), ...options);
      expect([exitCode, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(message);
    }
  });

  it.each([
    ['gateway.tls.cert', () => ({ gateway: { tls: pathsOf(server) } }), () => server],
    ['gateway.admin_tls.cert', () => ({ gateway: { admin_tls: pathsOf(other) } }), () => other],
    ['replicas: a: tls.cert', () => ({ toReplica: pathsOf(server) }), () => server],
  ])(
    'warns of a certificate of %s that expires within two weeks, and refuses one that has expired',
    async (key, toSettings, toCertificate) => {
      const { cert, certPath } = toCertificate();
      const endMs = new X509Certificate(cert).validToDate.getTime();
      const day = new Date(endMs).toISOString().slice(0, 10);
      const checkAt = async (timeMs: number) => {
        vi.useFakeTimers({ now: timeMs, toFake: ['Date'] });
        const { exitCode, stderr } = await check(toSettings());
        return { exitCode, stderr };
      };
      const twoWeeksMs = 14 * 24 * 3600 * 1000;
      expect(await checkAt(endMs - twoWeeksMs - 1)).toEqual({ exitCode: 0, stderr: '' });
      const warning = `gateway: warning: ${key}: ${certPath} expires on ${day}\n`;
      expect(await checkAt(endMs - twoWeeksMs)).toEqual({ exitCode: 0, stderr: warning });
      const refusal = `gateway: ${key}: ${certPath} expired on ${day}\n`;
      expect(await checkAt(endMs)).toEqual({ exitCode: 2, stderr: refusal });
    },
  );

  it('uses the certificates of a replica to connect to it', async () => {
    const known = { ca: authority.ca.certPath };
    expect(await check({ toReplica: { ...known, ...pathsOf(other) } }, '--connect')).toMatchObject({
      exitCode: 0,
    });
    const untrusted = await check({ toReplica: pathsOf(other) }, '--connect');
    expect(untrusted.exitCode).toBe(1);
    expect(untrusted.stdout).toMatch(/TLS failed .*name its authority with tls\.ca/);
    const withoutOwn = await check({ toReplica: known }, '--connect');
    expect(withoutOwn.exitCode).toBe(1);
    expect(withoutOwn.stdout).toContain('whether it wants a client certificate (tls.cert)');
  });
});
