import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority, type TestAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const LIMIT = 4;
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n';
const CHAT = postBytes('/v1/chat/completions', '{"model":"m","messages":[]}', [
  'Content-Type: application/json',
]);
/** The first record of a ClientHello of 32 MB: content type, version, length; then type, length and zeros. */
const HUGE_HELLO = Buffer.concat([Buffer.from('160301400001ffffff', 'hex'), Buffer.alloc(0x4000 - 4)]);

let authority: TestAuthority;
let replica: FakeReplica;
/** Its time-outs are short. */
let gateway: StartedGateway;
/** Its time-outs are longer than a test may take. */
let patient: StartedGateway;

beforeAll(async () => {
  [authority, replica] = await Promise.all([createAuthority(), startFakeReplica()]);
  const { certPath: cert, keyPath: key } = await authority.issue('server');
  const start = (timeout: string) =>
    startGateway({
      replicas: [replica],
      config: {
        gateway: { tls: { cert, key } },
        limits: { connections: LIMIT },
        timeouts: { client_headers: timeout, keep_alive: timeout },
      },
    });
  [gateway, patient] = await Promise.all([start('300ms'), start('300s')]);
});

afterAll(async () => {
  await Promise.all([gateway, patient, authority, replica].map((each) => each[Symbol.asyncDispose]()));
});

const openTls = (to = gateway) => RawConnection.open(to.url, { ca: authority.ca.cert });

/** A TCP connection, without TLS. */
async function openTcp(to = gateway): Promise<Socket> {
  return await openTcpAt(to.url);
}

/** A TCP connection to the port of a url, until the test is over. */
async function openTcpAt(url: string): Promise<Socket> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), allowHalfOpen: true }).on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Resolves when the gateway has ended the connection, in whatever way. */
function untilClosed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.resume().once('end', resolve).once('close', resolve));
}

/** Resolves when all connections that the limit allows can be open at once, each of them served. */
async function untilAllServed(by = gateway): Promise<void> {
  for (;;) {
    const opening = await Promise.allSettled(Array.from({ length: LIMIT }, () => openTls(by)));
    const opened = opening.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    for (const connection of opened) connection.write(HEALTH);
    const responses = await Promise.all(opened.map((connection) => connection.readResponse()));
    for (const connection of opened) connection[Symbol.dispose]();
    if (responses.filter(({ status }) => status === 200).length === LIMIT) return;
  }
}

describe('a listener with TLS ends, and does not count any longer,', () => {
  test('handshakes that never come, at the connection limit', async () => {
    const silent = await Promise.all(Array.from({ length: LIMIT }, () => openTcp()));
    await expect(openTls()).rejects.toThrow();
    await Promise.all(silent.map(untilClosed));
    await untilAllServed();
  });

  test('a handshake whose bytes come one by one, although each is in time', async () => {
    const hello = await takeHello();
    const socket = await openTcp();
    const closed = untilClosed(socket);
    let sent = 0;
    const drip = setInterval(() => socket.write(hello.subarray(sent, ++sent)), 20);
    await closed;
    clearInterval(drip);
    expect(sent).toBeLessThan(hello.length);
    await untilAllServed();
  });

  test('a connection on which no request follows the handshake', async () => {
    const socket = await openTls();
    expect(await socket.readToClose()).toHaveLength(0);
    await untilAllServed();
  });
});

describe('without waiting for a time-out, a listener with TLS ends, and does not count any longer,', () => {
  test.each([
    ['a ClientHello that is far too long', HUGE_HELLO],
    ['a request without TLS', HEALTH],
    ['bytes of no protocol', '\u0000'.repeat(64)],
  ])('%s', async (_, bytes) => {
    const socket = await openTcp(patient);
    socket.write(bytes);
    await untilClosed(socket);
    await untilAllServed(patient);
  });

  test.each([
    ['reset', (socket: Socket) => socket.resetAndDestroy()],
    ['closed', (socket: Socket) => socket.destroy()],
    ['half closed', (socket: Socket) => socket.end()],
  ])(
    'handshakes that the client has %s: before it, in the middle, and after its ClientHello',
    async (_, leave) => {
      const hello = await takeHello();
      for (const sent of [0, 40, hello.length]) {
        const sockets = await Promise.all(Array.from({ length: LIMIT }, () => openTcp(patient)));
        for (const socket of sockets) {
          socket.write(hello.subarray(0, sent));
          leave(socket);
        }
        await untilAllServed(patient);
      }
    },
  );
});

test.each(['gateway', 'admin'] as const)(
  'plain HTTP to the %s listener gets 400 in plain text, and the log has the client',
  async (listener) => {
    const { certPath: cert, keyPath: key } = await authority.issue('server');
    await using logging = await startGateway({
      replicas: [replica],
      config: { gateway: { tls: { cert, key }, admin_tls: { cert, key } } },
    });
    const to = listener === 'gateway' ? logging.url : logging.adminUrl;
    using client = await RawConnection.open(to);
    client.write(CHAT);
    const answer = await client.readResponse();
    expect([answer.status, answer.header('content-type'), answer.body.toString()]).toEqual([
      400,
      ['text/plain'],
      'This port speaks TLS: use https://\n',
    ]);
    expect(await client.readToClose()).toHaveLength(0);
    const line = JSON.parse(await logging.untilLogged('TLS handshake failed'));
    expect(line).toMatchObject({ code: 'ERR_SSL_HTTP_REQUEST', client_address: '127.0.0.1' });
    expect(line.listener).toBe(listener === 'admin' ? 'admin' : undefined);
  },
);

test('a TCP probe is not logged as a failed handshake, so that it does not hide others', async () => {
  const { certPath: cert, keyPath: key } = await authority.issue('logged');
  await using logging = await startGateway({
    replicas: [replica],
    config: { gateway: { tls: { cert, key } } },
  });
  for (const bytes of ['', HEALTH]) {
    const socket = await openTcp(logging);
    if (bytes === '') socket.end();
    else socket.write(bytes);
    await untilClosed(socket);
  }
  const line = JSON.parse(await logging.untilLogged('TLS handshake failed'));
  expect(line).toMatchObject({ code: 'ERR_SSL_HTTP_REQUEST' });
});

test('the log says why the certificate of a client was refused', async () => {
  await using foreign = await createAuthority();
  const [{ certPath: cert, keyPath: key }, stranger] = await Promise.all([
    authority.issue('strict'),
    foreign.issue('stranger'),
  ]);
  const tls = { cert, key, client_ca: authority.ca.certPath };
  await using strict = await startGateway({ replicas: [replica], config: { gateway: { tls } } });
  const own = { ca: authority.ca.cert, cert: stranger.cert, key: stranger.key };
  using client = await RawConnection.open(strict.url, own);
  const line = JSON.parse(await strict.untilLogged('TLS handshake failed'));
  expect(line).toMatchObject({ code: expect.stringMatching(/ISSUER|VERIFY/) });
  await client.readToClose();
});

test('the admin listener ends the handshake of a client that leaves, too', async () => {
  const { certPath: cert, keyPath: key } = await authority.issue('admin');
  await using secured = await startGateway({
    replicas: [replica],
    config: { gateway: { admin_tls: { cert, key } }, timeouts: { client_headers: '300s' } },
  });
  const socket = await openTcpAt(secured.adminUrl);
  socket.end();
  await untilClosed(socket);
});

test('a reload of client_headers applies to the handshakes of the admin listener that follow, and to no others', async () => {
  const { certPath: cert, keyPath: key } = await authority.issue('timed');
  const gatewayKeys = { gateway: { admin_tls: { cert, key } } };
  await using secured = await startGateway({
    replicas: [replica],
    config: { ...gatewayKeys, timeouts: { client_headers: '300s' } },
  });
  const open = () => openTcpAt(secured.adminUrl);
  const earlier = await open();
  secured.writeConfig({ config: { ...gatewayKeys, timeouts: { client_headers: '2s' } } });
  using kept = await RawConnection.open(secured.adminUrl, { ca: authority.ca.cert });
  const call = (method: string, path: string, on = kept) => {
    on.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
    return on.readResponse();
  };
  expect((await call('POST', '/admin/reload')).status).toBe(200);
  using later = await RawConnection.open(secured.adminUrl, { ca: authority.ca.cert });
  expect((await call('GET', '/admin/stats', later)).status).toBe(200);
  await untilClosed(await open());
  expect((await call('GET', '/admin/stats', later)).status).toBe(200);
  // A connection whose handshake is complete stays open, and one that began before has its own time.
  expect((await call('GET', '/admin/stats')).status).toBe(200);
  expect(earlier.readableEnded || earlier.destroyed).toBe(false);
  earlier.destroy();
});

test('a head that does not end gets 408 over TLS, too', async () => {
  using client = await openTls();
  client.write('POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n');
  expect((await client.readResponse()).status).toBe(408);
});

test.each([
  ['resets the connection', (_client: RawConnection, tcp: Socket) => tcp.resetAndDestroy()],
  ['ends its side with close_notify', (client: RawConnection) => client.socket.end()],
  ['ends its side without close_notify', (_client: RawConnection, tcp: Socket) => tcp.end()],
])('a client that %s before its answer has left, as without TLS', async (_, leave) => {
  replica.answerOnce(hang);
  const tcp = await openTcp();
  using client = await RawConnection.open(gateway.url, { ca: authority.ca.cert, socket: tcp });
  client.write(CHAT);
  const received = await replica.nextRequest();
  leave(client, tcp);
  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 499, error_type: 'client_closed' });
  await untilAllServed();
});

/** A record of TLS 1.3 that no key has made. */
const FOREIGN_RECORD = Buffer.concat([Buffer.from('1703030064', 'hex'), Buffer.alloc(100, 7)]);

test('a record of a client that cannot be decrypted ends its request, although the client stays', async () => {
  replica.answerOnce(hang);
  const tcp = await openTcp(patient);
  const wire = new Duplex({
    read: () => tcp.resume(),
    write: (bytes, _encoding, done) => void tcp.write(bytes, () => done()),
  });
  tcp.on('data', (bytes) => wire.push(bytes));
  using client = await RawConnection.open(patient.url, { ca: authority.ca.cert, socket: wire });
  client.write(CHAT);
  const received = await replica.nextRequest();
  // The client does not read the alert.
  tcp.pause().removeAllListeners('data').write(FOREIGN_RECORD);
  await received.untilAborted();
  tcp.destroy();
});

test('a record of a replica that cannot be decrypted cuts its answer at once, although the replica stays', async () => {
  const { cert, key } = await authority.issue('broken replica');
  await using stack = new AsyncDisposableStack();
  const server = createServer((tcp) => {
    stack.defer(() => void tcp.destroy());
    const tls = new TLSSocket(tcp, { isServer: true, cert, key }).on('error', () => undefined);
    tls.once('data', () =>
      tls.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}', () => tcp.write(FOREIGN_RECORD)),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(() => void server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tls = { ca: authority.ca.certPath };
  await using relaying = await startGateway({ replicas: [{ name: 'broken', url, models: ['m'], tls }] });
  using client = await RawConnection.open(relaying.url);
  client.write(CHAT);
  expect(await client.readResponse()).toMatchObject({ status: 200, isComplete: false });
  expect(await relaying.nextRecord()).toMatchObject({ status: 200, truncated: true });
});

test.each([
  ['half a JSON object', 'application/json', '{"a":{"b":1}', false],
  ['a whole JSON object', 'application/json', '{"a":{"b":1}}', true],
  ['a stream without its end mark', 'text/event-stream', 'data: {"choices":[]}\n\n', false],
  ['a stream with its end mark', 'text/event-stream', 'data: {"choices":[]}\n\ndata: [DONE]\n\n', true],
  ['text', 'text/plain', 'whole or not', false],
])('%s that only the end of a TLS connection ends, without close_notify', async (_, type, body, isWhole) => {
  const { cert, key } = await authority.issue('closing replica');
  await using stack = new AsyncDisposableStack();
  const server = createServer((tcp) => {
    stack.defer(() => void tcp.destroy());
    const tls = new TLSSocket(tcp, { isServer: true, cert, key }).on('error', () => undefined);
    tls.once('data', () =>
      tls.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n${body}`, () => tcp.end()),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(() => void server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tls = { ca: authority.ca.certPath };
  await using relaying = await startGateway({ replicas: [{ name: 'closing', url, models: ['m'], tls }] });
  using client = await RawConnection.open(relaying.url);
  client.write(CHAT);
  expect((await client.readResponse()).body.toString()).toContain(body);
  const { truncated, error_type } = await relaying.nextRecord();
  expect([truncated ?? false, error_type ?? null]).toEqual(
    isWhole ? [false, null] : [true, 'upstream_failed'],
  );
});

test('a client that resets the connection in the middle of a stream ends it at the replica', async () => {
  replica.answerOnce(async ({ head, write }) => {
    await head(200, ['Content-Type', 'text/event-stream']);
    await write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
  });
  const tcp = await openTcp();
  using client = await RawConnection.open(gateway.url, { ca: authority.ca.cert, socket: tcp });
  client.write(CHAT);
  const received = await replica.nextRequest();
  await client.untilBuffered('data:');
  tcp.resetAndDestroy();
  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 200, truncated: true });
  await untilAllServed();
});

/** What a client sends first: its whole ClientHello. */
async function takeHello(): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write(bytes, _encoding, done) {
        resolve(bytes);
        done();
      },
    });
    connectTls({ socket: wire }).on('error', () => undefined);
  });
}
