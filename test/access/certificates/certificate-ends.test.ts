import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseConfig } from '#config';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { createCertificateLister } from '../../../src/access/certificates/certificate-ends.ts';
import type { Certificates } from '../../../src/access/certificates/certificate-files.ts';

let authority: TestAuthority;
let short: IssuedCertificate;
let long: IssuedCertificate;

beforeAll(async () => {
  authority = await createAuthority();
  [short, long] = await Promise.all([authority.issue('short', undefined, 3), authority.issue('long')]);
});

afterAll(() => authority[Symbol.asyncDispose]());

const TLS = { clientCa: null, minVersion: 'TLSv1.2', ticketKeys: new Uint8Array(48) } as const;
const EMPTY: Certificates = { listen: null, admin: null, replicas: [] };

const subjectsOf = (certificates: Partial<Certificates>) =>
  createCertificateLister()({ ...EMPTY, ...certificates }).map(({ subject }) => subject);

function replicas(tlsOf: Readonly<Record<string, { ca?: string; cert?: string }>>): Certificates['replicas'] {
  const list = Object.keys(tlsOf).map((name) => `{ name: ${name}, url: "https://${name}.test" }`);
  const config = parseConfig(`replicas: [${list.join(', ')}]`, { path: 'g', env: {} });
  return config.replicas.map(({ tls: _, ...replica }) => ({
    ...replica,
    tls: { ca: null, cert: null, key: null, verify: true, ...tlsOf[replica.name] },
  }));
}

test('certificates are listed by who uses them, those that end first before the others', () => {
  const subjects = subjectsOf({
    listen: { ...TLS, pairs: [long], clientCa: authority.ca.cert },
    admin: { ...TLS, pairs: [short] },
  });
  expect(subjects[0]).toBe('admin (CN=spangate short)');
  expect(subjects.toSorted()).toEqual([
    'admin (CN=spangate short)',
    'listen (CN=spangate long)',
    'listen client_ca (CN=spangate ca)',
  ]);
});

test('a chain ends with its first certificate, and authorities in one file with their last', () => {
  const both = long.cert + short.cert;
  const listed = createCertificateLister()({
    ...EMPTY,
    listen: { ...TLS, pairs: [{ cert: both, key: long.key }], clientCa: both },
  });
  const endOf = ({ cert }: IssuedCertificate) => new X509Certificate(cert).validToDate.getTime();
  expect(listed).toEqual([
    { subject: 'listen (CN=spangate short)', endMs: endOf(short) },
    { subject: 'listen client_ca (CN=spangate long)', endMs: endOf(long) },
  ]);
});

test('a file that replicas share is listed once', () => {
  const tls = { ca: authority.ca.cert };
  expect(subjectsOf({ replicas: replicas({ a: tls, b: { ...tls, cert: short.cert }, c: tls }) })).toEqual([
    'replica b (CN=spangate short)',
    'replica a ca and 2 more (CN=spangate ca)',
  ]);
});

test('what is no certificate among others is skipped', () => {
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const listed = subjectsOf({ listen: { ...TLS, pairs: [long], clientCa: broken + short.cert } });
  expect(listed).toContain('listen client_ca (CN=spangate short)');
});
