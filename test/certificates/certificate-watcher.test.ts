import { X509Certificate } from 'node:crypto';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Certificates, createCertificateReader } from '../../src/certificates/certificate-files.ts';
import { CertificateWatcher } from '../../src/certificates/certificate-watcher.ts';
import { toConfig } from '../../src/config/config.ts';
import { parseConfigFile } from '../../src/config/load.ts';
import { createInTurn } from '../../src/in-turn.ts';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '../support/certificates.ts';
import { EventLog } from '../support/event-log.ts';

let authority: TestAuthority;
let folder: string;

beforeAll(async () => {
  [authority, folder] = await Promise.all([createAuthority(), mkdtemp(join(tmpdir(), 'spangate-watch-'))]);
});

afterAll(async () => {
  await Promise.all([authority[Symbol.asyncDispose](), rm(folder, { recursive: true })]);
});

const at = (name: string) => join(folder, name);

/** Puts a certificate where the configuration of `watch` expects it. */
async function put({ certPath, keyPath }: IssuedCertificate): Promise<void> {
  await Promise.all([copyFile(certPath, at('cert.pem')), copyFile(keyPath, at('key.pem'))]);
}

/** Watches a listener with cert.pem and key.pem, and a replica with ca.pem. */
async function watch({ epochMs = Date.now } = {}) {
  const text = `
gateway: { tls: { cert: ${at('cert.pem')}, key: ${at('key.pem')} } }
replicas: [{ name: a, url: "https://a.test", tls: { ca: ${at('ca.pem')} } }]
`;
  const config = toConfig(parseConfigFile(text, { path: at('gateway.yaml'), env: {} }));
  const forListeners = new EventLog<Certificates>();
  const forReplicas = new EventLog<Certificates>();
  const lines = new EventLog<string>();
  const write = (_fields: object, message: string) => lines.push(message);
  const readCertificates = createCertificateReader();
  const watcher = new CertificateWatcher(await readCertificates(config), {
    ...{ intervalMs: 5, inTurn: createInTurn(), epochMs },
    read: () => readCertificates(config),
    useForListeners: async (next) => forListeners.push(next),
    useForReplicas: async (next) => forReplicas.push(next),
    log: { info: write, warn: write, error: write },
  });
  watcher.start();
  return { forListeners, forReplicas, lines, [Symbol.dispose]: () => watcher.stop() };
}

test('new contents of a file are used by whom it is for, and contents that cannot be used are refused once', async () => {
  const [first, second] = await Promise.all([authority.issue('first'), authority.issue('second')]);
  await Promise.all([put(first), copyFile(authority.ca.certPath, at('ca.pem'))]);
  using watched = await watch();

  await put(second);
  expect((await watched.forListeners.next()).listen?.pairs).toEqual([{ cert: second.cert, key: second.key }]);
  expect(watched.forReplicas.items).toEqual([]);

  await copyFile(first.keyPath, at('key.pem'));
  const isRefusal = (line: string) => line.startsWith('certificates refused');
  await watched.lines.until(() => watched.lines.items.some(isRefusal));

  await put(second);
  await copyFile(first.certPath, at('ca.pem'));
  expect((await watched.forReplicas.next()).replicas[0]?.tls?.ca).toBe(first.cert);
  // Between two copies the pair may have been refused once more, for another reason.
  expect(watched.lines.items.filter(isRefusal).length).toBeLessThanOrEqual(3);
  expect(watched.forListeners.items).toHaveLength(1);
});

test('a certificate is announced when it comes into use, 14 days before its end, and at its end', async () => {
  const issued = await authority.issue('ending');
  await Promise.all([put(issued), copyFile(authority.ca.certPath, at('ca.pem'))]);
  const endMs = new X509Certificate(issued.cert).validToDate.getTime();
  const fortnightMs = 14 * 24 * 3_600_000;
  let nowMs = endMs - fortnightMs;
  using watched = await watch({ epochMs: () => nowMs });
  expect(await watched.lines.next()).toBe('certificate in use');
  nowMs += 1;
  expect(await watched.lines.next()).toBe('certificate in use expires soon');
  nowMs = endMs;
  expect(await watched.lines.next()).toBe('certificate in use has expired');
  expect(watched.lines.items).toHaveLength(3);
});
