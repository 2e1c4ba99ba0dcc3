import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createInTurn, StartError } from '#base';
import { parseConfig } from '#config';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import {
  type Certificates,
  createCertificateReader,
} from '../../../src/access/certificates/certificate-files.ts';
import { CertificateWatcher } from '../../../src/access/certificates/certificate-watcher.ts';

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

/** Watches a listener with cert.pem, key.pem and these other keys, and a replica with ca.pem. */
async function watch({ epochMs = Date.now, others = '' } = {}) {
  const text = `
gateway: { tls: { cert: ${at('cert.pem')}, key: ${at('key.pem')}${others} } }
replicas: [{ name: a, url: "https://a.test", tls: { ca: ${at('ca.pem')} } }]
`;
  const config = parseConfig(text, { path: at('gateway.yaml'), env: {} });
  const forListeners = new EventLog<Certificates>();
  const forReplicas = new EventLog<Certificates>();
  const lines = new EventLog<string>();
  const write = (_fields: object, message: string) => lines.push(message);
  const readCertificates = createCertificateReader();
  const watcher = new CertificateWatcher(await readCertificates(config), {
    intervalMs: 5,
    inTurn: createInTurn(),
    epochMs,
    read: () => readCertificates(config),
    useForListeners: async (next) => forListeners.push(next),
    useForReplicas: async (next) => forReplicas.push(next),
    log: { info: write },
  });
  watcher.start();
  return { watcher, forListeners, forReplicas, lines, [Symbol.dispose]: () => watcher.stop() };
}

test('new contents of a file are used by whom it is for, and contents that cannot be used are a problem until they can', async () => {
  const [first, second] = await Promise.all([authority.issue('first'), authority.issue('second')]);
  await Promise.all([put(first), copyFile(authority.ca.certPath, at('ca.pem'))]);
  using watched = await watch();

  await put(second);
  expect((await watched.forListeners.next()).listen?.pairs).toEqual([{ cert: second.cert, key: second.key }]);
  expect(watched.forReplicas.items).toEqual([]);

  await copyFile(first.keyPath, at('key.pem'));
  await expect.poll(() => watched.watcher.problem).toContain('gateway.tls: ');

  await put(second);
  await copyFile(first.certPath, at('ca.pem'));
  expect((await watched.forReplicas.next()).replicas[0]?.tls?.ca).toBe(first.cert);
  await expect.poll(() => watched.watcher.problem).toBeNull();
  expect(watched.forListeners.items).toHaveLength(1);
});

test('new contents of client_ca alone are used, too', async () => {
  const [first, second] = await Promise.all([authority.issue('first'), authority.issueAuthority('second')]);
  await Promise.all([
    put(first),
    copyFile(authority.ca.certPath, at('ca.pem')),
    copyFile(authority.ca.certPath, at('clients.pem')),
  ]);
  using watched = await watch({ others: `, client_ca: ${at('clients.pem')}` });
  await copyFile(second.ca.certPath, at('clients.pem'));
  expect((await watched.forListeners.next()).listen?.clientCa).toBe(second.ca.cert);
});

test('a certificate is announced when it comes into use', async () => {
  const [first, second] = await Promise.all([authority.issue('announced'), authority.issue('next')]);
  await Promise.all([put(first), copyFile(authority.ca.certPath, at('ca.pem'))]);
  using watched = await watch();
  expect(watched.lines.items).toEqual(['certificate in use']);
  await put(second);
  await watched.lines.count(2);
  expect(watched.lines.items).toEqual(['certificate in use', 'certificate in use']);
});

describe('a watcher whose time passes as the test says', () => {
  const unencrypted: Certificates = { listen: null, admin: null, replicas: [] };
  const config = parseConfig('replicas: [{ name: a, url: "https://a" }]', { path: 'g', env: {} });
  const changed: Certificates = {
    ...unencrypted,
    replicas: config.replicas.map(({ tls: _, ...replica }) => replica),
  };
  const log = { info: () => undefined };
  const inTurn = createInTurn();

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Lets so many intervals pass, and waits for the checks that they have begun. */
  const pass = (intervals: number) => {
    vi.advanceTimersByTime(intervals);
    return inTurn(async () => undefined);
  };

  test('begins no check before the last one ends, and uses nothing that it finds after a stop', async () => {
    const reading = Promise.withResolvers<Certificates>();
    const read = vi.fn(() => reading.promise);
    const use = vi.fn(async () => undefined);
    const watcher = new CertificateWatcher(unencrypted, {
      intervalMs: 1,
      inTurn,
      log,
      epochMs: Date.now,
      read,
      useForListeners: use,
      useForReplicas: use,
    });
    watcher.start();
    const passed = pass(100);
    watcher.stop();
    reading.resolve(changed);
    await passed;
    expect(read).toHaveBeenCalledTimes(1);
    expect(use).not.toHaveBeenCalled();
  });

  test('has no problem any more once a reload has read the files', async () => {
    const watcher = new CertificateWatcher(unencrypted, {
      intervalMs: 1,
      inTurn,
      log,
      epochMs: Date.now,
      read: async () => Promise.reject(new StartError('gateway.tls: no')),
      useForListeners: async () => undefined,
      useForReplicas: async () => undefined,
    });
    watcher.start();
    await pass(1);
    watcher.stop();
    expect(watcher.problem).toBe('gateway.tls: no');
    await watcher.adopt(unencrypted);
    expect(watcher.problem).toBeNull();
  });

  test('tries again what replicas could not use, and stops when they do', async () => {
    const useForReplicas = vi.fn(async (_: Certificates) => undefined);
    useForReplicas.mockRejectedValueOnce(new StartError('replicas: too many'));
    const watcher = new CertificateWatcher(unencrypted, {
      intervalMs: 1,
      inTurn,
      log,
      epochMs: Date.now,
      useForReplicas,
      read: async () => changed,
      useForListeners: async () => undefined,
    });
    watcher.start();
    for (let check = 0; check < 3; check++) await pass(1);
    watcher.stop();
    expect(useForReplicas).toHaveBeenCalledTimes(2);
  });
});

test('the keys of session tickets are replaced every six hours, while the certificates stay', async () => {
  await Promise.all([put(await authority.issue('steady')), copyFile(authority.ca.certPath, at('ca.pem'))]);
  let nowMs = Date.now();
  const keys: string[] = [];
  using watched = await watch({ epochMs: () => nowMs });
  for (let turn = 1; turn <= 2; turn++) {
    nowMs += 6 * 3_600_000;
    await watched.forListeners.until(() => watched.forListeners.items.length >= turn);
    keys.push(Buffer.from(watched.forListeners.items.at(-1)?.listen?.ticketKeys ?? []).toString('hex'));
  }
  expect(new Set(keys).size).toBe(2);
  expect(watched.forListeners.items).toHaveLength(2);
});
