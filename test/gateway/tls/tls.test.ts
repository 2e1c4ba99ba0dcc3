import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { listen } from '#testkit/servers/local-server.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../../cli/invoke.ts';

const run = promisify(execFile);

let authority: TestAuthority;
let replica: FakeReplica;
let server: IssuedCertificate;
let named: IssuedCertificate;
let client: IssuedCertificate;
let rsaKeyPath: string;
let foreign: TestAuthority;

beforeAll(async () => {
  [authority, foreign, replica] = await Promise.all([
    createAuthority(),
    createAuthority(),
    startFakeReplica(),
  ]);
  [server, named, client] = await Promise.all([
    authority.issue('server'),
    authority.issue('named', 'DNS:llm.example.test,DNS:*.models.example.test'),
    authority.issue('client'),
  ]);
  rsaKeyPath = join(dirname(server.keyPath), 'rsa.key');
  await writeFile(
    rsaKeyPath,
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
});

afterAll(async () => {
  await Promise.all([authority, foreign, replica].map((each) => each[Symbol.asyncDispose]()));
});

const pathsOf = ({ certPath, keyPath }: IssuedCertificate) => ({ cert: certPath, key: keyPath });

const start = (
  gateway: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
) => startGateway({ replicas: [replica], config: { ...config, gateway } });

const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });

/** Sends one chat completion over a connection of its own. */
async function chat({ url }: StartedGateway, own: { readonly cert?: string; readonly key?: string } = {}) {
  const agent = new Agent({ connect: { ca: authority.ca.cert, ...own } });
  try {
    const answer = await request(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: BODY,
      dispatcher: agent,
      headers: { 'content-type': 'application/json' },
    });
    await answer.body.dump();
    return answer.statusCode;
  } finally {
    await agent.destroy();
  }
}

/** Closes a socket with the test, also when the test fails or is too late: an open one would keep its gateway open. */
function closeAfterTest<Opened extends Socket>(socket: Opened): Opened {
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Keeps one connection to a gateway, for as long as the test lasts. */
function createAgent(): Agent {
  const agent = new Agent({ connections: 1, connect: { ca: authority.ca.cert } });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** A folder for as long as the test lasts. */
async function createFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Connects without TLS. */
function connectPlain(url: string, options: { readonly allowHalfOpen?: boolean } = {}): Socket {
  const { hostname: host, port } = new URL(url);
  return closeAfterTest(connectTcp({ host, port: Number(port), ...options }));
}

/** Does one handshake; rejects if it fails. A client learns only later that its certificate was refused. */
function shake({ url }: StartedGateway, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = closeAfterTest(
      connectTls({ host, port: Number(port), ca: authority.ca.cert, ...options }),
    );
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

describe('a listener with a certificate', () => {
  let gateway: StartedGateway;
  beforeAll(async () => {
    const tls = { ...pathsOf(server), pairs: [pathsOf(named)] };
    gateway = await start({ tls });
  });
  afterAll(() => gateway.close());

  test('serves clients over TLS, and tells the replica and the record so', async () => {
    expect(await chat(gateway)).toBe(200);
    const received = await replica.nextRequest();
    expect(received.header('x-forwarded-proto')).toEqual(['https']);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'a' });
  });

  test('speaks HTTP/1.1 over TLS 1.3, as openssl sees it', async () => {
    const { host } = new URL(gateway.url);
    const arguments_ = [
      's_client',
      '-connect',
      host,
      '-CAfile',
      authority.ca.certPath,
      '-alpn',
      'h2,http/1.1',
    ];
    const running = run('openssl', [...arguments_, '-verify_return_error']);
    running.child.stdin?.end();
    const { stdout } = await running;
    expect(stdout).toContain('TLSv1.3');
    expect(stdout).toContain('ALPN protocol: http/1.1');
    expect(stdout).toContain('Verify return code: 0 (ok)');
  });

  test('refuses TLS 1.1', async () => {
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(shake(gateway, old)).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
  });

  test.each([
    ['llm.example.test', 'spangate named'],
    ['a.models.example.test', 'spangate named'],
    ['other.example.test', 'spangate server'],
    ['__proto__', 'spangate server'],
  ])('shows a client that asks for %s the certificate of %s', async (servername, subject) => {
    const socket = await shake(gateway, { servername, checkServerIdentity: () => undefined });
    expect(socket.getPeerCertificate().subject.CN).toBe(subject);
    socket.destroy();
  });
});

test('closes a connection without TLS, and one whose handshake does not come, and counts neither any longer', async () => {
  const limits = { limits: { connections: 3 }, timeouts: { client_headers: '2s' } };
  await using gateway = await start({ tls: pathsOf(server) }, limits);
  const closed = Array.from({ length: 3 }, (_, index) => {
    const socket = connectPlain(gateway.url).resume();
    if (index === 0) socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    return new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
  });
  await Promise.all(closed);
  expect(await chat(gateway)).toBe(200);
});

/** Opens a connection that sends these bytes and closes its side, and waits until the gateway has closed it. */
async function leaveDuringHandshake({ url }: StartedGateway, bytes: Buffer): Promise<void> {
  const socket = connectPlain(url, { allowHalfOpen: true }).resume();
  socket.end(bytes);
  await new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
}

test('a client that leaves during the handshake takes no connection of limits.connections any longer', async () => {
  const config = { limits: { connections: 1 }, timeouts: { client_headers: '1h' } };
  await using gateway = await start({ tls: pathsOf(server) }, config);
  // Before the hello, in the middle of its record, and after bytes that are no TLS.
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('16030100ff01', 'hex'),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  ]) {
    await leaveDuringHandshake(gateway, bytes);
  }
  expect(await chat(gateway)).toBe(200);
});

test('a reload of client_headers applies to the handshakes that follow', async () => {
  const before = { timeouts: { client_headers: '1h' } };
  await using gateway = await start({ tls: pathsOf(server) }, before);
  gateway.writeConfig({
    config: { timeouts: { client_headers: '2s' }, gateway: { tls: pathsOf(server) } },
  });
  expect((await gateway.reload()).status).toBe(200);
  const silent = connectPlain(gateway.url).resume();
  await new Promise((resolve) => silent.once('error', resolve).once('close', resolve));
  expect(await chat(gateway)).toBe(200);
});

test('an idle TLS connection is closed when keep_alive is over', async () => {
  await using gateway = await start({ tls: pathsOf(server) }, { timeouts: { keep_alive: '100ms' } });
  const socket = await shake(gateway);
  await new Promise((resolve) => socket.resume().once('close', resolve));
});

test('a shutdown waits neither for an open handshake nor for an idle TLS connection', async () => {
  // No other time-out ends the handshake in the time of a test.
  const config = { shutdown: { grace: '1h' }, timeouts: { client_headers: '1h' } };
  await using gateway = await start({ tls: pathsOf(server) }, config);
  const idle = await shake(gateway);
  const silent = connectPlain(gateway.url);
  await new Promise((resolve) => silent.once('connect', resolve));
  const closed = [idle, silent].map(
    (socket) =>
      new Promise((resolve) =>
        socket
          .on('error', () => undefined)
          .resume()
          .once('close', resolve),
      ),
  );
  await gateway.close();
  await Promise.all(closed);
});

test('a listener with min_version TLSv1.3 refuses TLS 1.2', async () => {
  await using gateway = await start({ tls: { ...pathsOf(server), min_version: 'TLSv1.3' } });
  await expect(shake(gateway, { maxVersion: 'TLSv1.2' })).rejects.toMatchObject({
    code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
  });
});

test('a listener with client_ca serves only clients with a certificate of that authority, and records its subject', async () => {
  const tls = { ...pathsOf(server), client_ca: authority.ca.certPath, record_subject: true };
  await using gateway = await start({ tls });
  await expect(chat(gateway)).rejects.toThrow();
  const { cert, key } = await foreign.issue('intruder');
  await expect(chat(gateway, { cert, key })).rejects.toThrow();
  expect(await chat(gateway, { cert: client.cert, key: client.key })).toBe(200);
  expect(await gateway.nextRecord()).toMatchObject({ client_subject: 'CN=spangate client' });
});

test('new contents of the files are used for new connections after a reload, and the old connections stay', async () => {
  const folder = await createFolder('spangate-rotation-');
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const put = async ({ certPath, keyPath }: IssuedCertificate) => {
    await Promise.all([copyFile(certPath, paths.cert), copyFile(keyPath, paths.key)]);
  };
  await put(server);
  await using gateway = await start({ tls: paths, workers: 2 });
  const subjectNow = async () => {
    const socket = await shake(gateway);
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  };
  const kept = createAgent();
  const ask = () => request(`${gateway.url}/healthz`, { dispatcher: kept }).then(({ body }) => body.text());
  expect(await ask()).toBe('ok');
  expect(await subjectNow()).toBe('spangate server');

  await put(await authority.issue('successor'));
  expect((await gateway.reload()).status).toBe(200);
  expect(await subjectNow()).toBe('spangate successor');
  expect(await ask()).toBe('ok');

  await copyFile(server.keyPath, paths.key);
  const refused = await gateway.reload();
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain('the key does not belong to the certificate');
  expect(await subjectNow()).toBe('spangate successor');
});

test.each([
  [
    'a file that is missing',
    () => ({ ...pathsOf(server), cert: '/nowhere/cert.pem' }),
    'gateway.tls.cert: cannot read',
  ],
  ['a key of another certificate', () => ({ cert: server.certPath, key: named.keyPath }), 'does not belong'],
  ['a key of another algorithm', () => ({ cert: server.certPath, key: rsaKeyPath }), 'does not belong'],
  ['an empty key', () => ({ cert: server.certPath, key: '/dev/null' }), 'the key is not a private key'],
  ['an empty certificate', () => ({ cert: '/dev/null', key: server.keyPath }), 'this is not PEM'],
  ['an empty client_ca', () => ({ ...pathsOf(server), client_ca: '/dev/null' }), 'this is not PEM'],
  ['a file that is no certificate', () => ({ cert: server.keyPath, key: server.keyPath }), 'this is not PEM'],
])('the gateway does not start with %s', async (_, toTls, message) => {
  await expect(start({ tls: toTls() })).rejects.toThrow(message);
});

test.each([
  ['an empty ca', () => ({ ca: '/dev/null' }), 'this is not PEM'],
  ['an empty certificate', () => ({ cert: '/dev/null', key: client.keyPath }), 'this is not PEM'],
  ['an empty key', () => ({ cert: client.certPath, key: '/dev/null' }), 'the key is not a private key'],
  ['a key of another certificate', () => ({ cert: client.certPath, key: named.keyPath }), 'does not belong'],
  ['a key of another algorithm', () => ({ cert: client.certPath, key: rsaKeyPath }), 'does not belong'],
])('the gateway does not start with %s for a replica', async (_, toTls, message) => {
  const replicas = [{ name: 'secured', url: 'https://127.0.0.1:1', tls: toTls() }];
  await expect(startGateway({ replicas })).rejects.toThrow(message);
});

test('the admin API is served over TLS of its own', async () => {
  await using gateway = await start({ admin_tls: pathsOf(server) });
  const agent = createAgent();
  const { statusCode, headers, body } = await request(`${gateway.adminUrl}/admin/stats`, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(statusCode).toBe(200);
  expect(await body.json()).toMatchObject({ recorded: 0 });
  expect(headers['strict-transport-security']).toBe('max-age=31536000');
});

test('the admin API shows each server name its own certificate, also after a reload', async () => {
  const folder = await createFolder('spangate-admin-pairs-');
  const pathsIn = (name: string) => ({ cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) });
  const [first, other] = [pathsIn('first'), pathsIn('other')];
  const put = (to: typeof other, { certPath, keyPath }: IssuedCertificate) =>
    Promise.all([copyFile(certPath, to.cert), copyFile(keyPath, to.key)]);
  await Promise.all([put(first, server), put(other, named)]);
  await using gateway = await start({
    tls: pathsOf(server),
    admin_tls: { ...first, pairs: [other] },
  });
  const subjectOf = async (servername: string) => {
    const options = { servername, checkServerIdentity: () => undefined };
    const socket = await shake({ ...gateway, url: gateway.adminUrl }, options);
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  };
  expect(await subjectOf('llm.example.test')).toBe('spangate named');
  expect(await subjectOf('other.example.test')).toBe('spangate server');
  // Who connects to an address sends no name.
  expect(await subjectOf('')).toBe('spangate server');
  await put(other, await authority.issue('renamed', 'DNS:llm.example.test'));
  await put(first, await authority.issue('renewed'));
  const agent = createAgent();
  const reloaded = await request(`${gateway.adminUrl}/admin/reload`, {
    method: 'POST',
    dispatcher: agent,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(await reloaded.body.json()).toMatchObject({ changed: ['gateway.admin_tls'], needs_restart: [] });
  expect(await subjectOf('llm.example.test')).toBe('spangate renamed');
  expect(await subjectOf('')).toBe('spangate renewed');
});

describe('towards a replica with a certificate of a private authority', () => {
  let secured: FakeReplica;
  beforeAll(async () => {
    const tls = { ...server, requestCert: true, rejectUnauthorized: true, ca: authority.ca.cert };
    secured = await startFakeReplica({ name: 'secured', tls });
  });
  afterAll(() => secured.close());

  const files = () => ({ ca: authority.ca.certPath, ...pathsOf(client) });
  const sendWith = async (tls: Readonly<Record<string, unknown>>) => {
    await using gateway = await startGateway({ replicas: [{ name: 'secured', url: secured.url, tls }] });
    const { status } = await gateway.chat();
    return status;
  };

  test('the gateway presents its client certificate, and verifies by the authority', async () => {
    expect(await sendWith(files())).toBe(200);
  });

  test.each([
    ['it has no client certificate', () => ({ ca: authority.ca.certPath })],
    ['it does not know the authority', () => pathsOf(client)],
    ['it knows another authority', () => ({ ...files(), ca: foreign.ca.certPath })],
    ['the certificate is for another name', () => ({ ...files(), server_name: 'other.example.test' })],
  ])('the replica counts as unreachable if %s', async (_, toTls) => {
    expect(await sendWith(toTls())).toBe(502);
  });

  test("the gateway's own questions do so, too", async () => {
    const tls = { ...server, requestCert: true, rejectUnauthorized: true, ca: authority.ca.cert };
    await using listing = await startFakeReplica({ name: 'listing', list: { models: ['m'] }, tls });
    await using gateway = await startGateway({
      replicas: [{ name: 'listing', url: listing.url, models: 'auto', tls: files() }],
    });
    await expect.poll(() => gateway.replicas()).toMatchObject([{ models: ['m'] }]);
  });

  test('verify: false accepts any certificate', async () => {
    expect(await sendWith({ ...pathsOf(client), verify: false })).toBe(200);
  });

  test('a reload uses other files on new connections', async () => {
    const toReplicas = (tls: Readonly<Record<string, unknown>>) => [
      { name: 'secured', url: secured.url, tls },
    ];
    await using gateway = await startGateway({
      replicas: toReplicas({ ...files(), ca: foreign.ca.certPath }),
    });
    expect((await gateway.chat()).status).toBe(502);
    gateway.writeConfig({ replicas: toReplicas(files()) });
    expect((await gateway.reload()).status).toBe(200);
    expect((await gateway.chat()).status).toBe(200);
  });
});

test('a reload gives probes, too, as long to connect as timeouts.connect now says', async () => {
  await using listing = await startFakeReplica({ name: 'far', tls: server });
  const { port } = new URL(listing.url);
  // Handshakes take longer than a second, which is how exactly undici measures connecting.
  const relay = createServer((from) => {
    const to = connectTcp(Number(port), '127.0.0.1');
    for (const socket of [from, to]) socket.on('error', () => undefined).setNoDelay();
    setTimeout(() => from.pipe(to).pipe(from), 1_500);
  });
  onTestFinished(() => void relay.close());
  const far = {
    name: 'far',
    url: `https://127.0.0.1:${await listen(relay)}`,
    tls: { ca: authority.ca.certPath },
  };
  const config = { timeouts: { connect: '1ms' } };
  await using gateway = await startGateway({ replicas: [far], config });
  const { reachability_reason } = await gateway.untilReachability('far', 'unreachable');
  expect(reachability_reason).toBe('connect_timeout');
  gateway.writeConfig({ config: { timeouts: { connect: '1h' } } });
  expect(await (await gateway.reload()).json()).toMatchObject({ changed: ['timeouts.connect'] });
  await gateway.untilReachability('far', 'reachable');
});

describe('the commands', () => {
  const env = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
  const stats = (...options: readonly string[]) => invoke(['stats', '--json', ...options], env);

  test('reach an admin API with TLS by its URL and authority, and with the client certificate that it wants', async () => {
    const admin_tls = { ...pathsOf(server), client_ca: authority.ca.certPath };
    await using gateway = await start({ admin_tls });
    const at = ['--admin', gateway.adminUrl];
    const known = [...at, '--ca', authority.ca.certPath];
    expect(await stats(...known, '--cert', client.certPath, '--key', client.keyPath)).toMatchObject({
      exitCode: 0,
    });
    expect((await stats(...known)).exitCode).toBe(1);
    expect((await stats(...at)).stderr).toContain('name it with --ca');
    expect((await stats(...known, '--cert', client.certPath)).stderr).toContain(
      '--cert and --key belong together',
    );
    const own = [...known, '--cert', client.certPath, '--key', client.keyPath];
    const { stdout } = await invoke(['__complete', 'bash', '--', 'drain', ...own, ''], env);
    expect(stdout).toBe(`${replica.name}\n`);
  });

  test('trust the certificate of the configuration file and no other', async () => {
    const selfSigned = authority.ca;
    await using gateway = await start({ admin_tls: pathsOf(selfSigned) });
    const { port } = new URL(gateway.adminUrl);
    const path = join(gateway.stateDir, 'for-commands.yaml');
    const write = ({ certPath, keyPath }: IssuedCertificate) =>
      writeFile(
        path,
        `gateway: { admin_listen: "127.0.0.1:${port}", admin_tls: { cert: ${certPath}, key: ${keyPath} } }\n` +
          'replicas: [{ name: a, url: "http://a" }]\n',
      );
    await write(selfSigned);
    expect(await stats('-c', path)).toMatchObject({ exitCode: 0 });
    await write(server);
    expect((await stats('-c', path)).exitCode).toBe(1);
  });
});
