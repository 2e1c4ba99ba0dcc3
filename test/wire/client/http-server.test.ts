import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { allocateLimit, readLimit, SharedLimit } from '#shared-memory';
import { createAuthority, type IssuedCertificate } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import { exchangeRaw, RawConnection } from '#testkit/raw-http.ts';
import { HttpServer } from '../../../src/wire/client/http-server.ts';
import { DeadlineClock } from '../../../src/wire/deadline-clock.ts';

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const SETTINGS = {
  maxHeadBytes: 1_000,
  headTimeoutMs: 60_000,
  keepAliveMs: 60_000,
  sendTimeoutMs: 60_000,
  maxDiscardedBytes: 1_000,
};
const toMaterial = ({ cert, key }: IssuedCertificate) => ({
  ...({ pairs: [{ cert, key }], clientCa: null, minVersion: 'TLSv1.2' } as const),
  ticketKeys: Buffer.alloc(48, 1),
});

/** A server that has room for two connections and answers each request, until the test is over. */
async function start(certificate: IssuedCertificate | null = null) {
  const memory = allocateLimit(1, 2);
  const events = new EventLog<string>();
  const server = new HttpServer(SETTINGS, certificate && toMaterial(certificate), {
    clock: new DeadlineClock(5),
    connections: new SharedLimit(memory, 0),
    handle: (exchange) =>
      exchange.answer(
        200,
        'text/plain',
        exchange.head.target === '/subject' ? `${exchange.clientSubject}` : 'ok',
      ),
    onTooMany: () => events.push('too many'),
    onHandshakeFailed: (code, address) => events.push(`${code} ${address}`),
    onDefect: (error) => events.push(String(error)),
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => {
    server.stopAccepting();
    server.destroyConnections();
  });
  const url = `http${certificate === null ? '' : 's'}://127.0.0.1:${port}`;
  return { server, port, url, events, heldCount: () => readLimit(memory).now };
}

/** Resolves when the server has seen that a connection is closed. */
async function untilHeld(count: number, heldCount: () => number): Promise<void> {
  while (heldCount() !== count) await new Promise(setImmediate);
}

test('a port that is taken is refused, and a free one is told', async () => {
  const { port, server } = await start();
  expect(port).toBeGreaterThan(0);
  const other = await start();
  other.server.stopAccepting();
  await expect(other.server.listen({ host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  expect(server.phase).toBe('serving');
});

test('a connection above the limit is closed unread, and there is room again when another closes', async () => {
  const { url, events, heldCount } = await start();
  using first = await RawConnection.open(url);
  using second = await RawConnection.open(url);
  for (const client of [first, second]) {
    client.write(GET);
    expect((await client.readResponse()).status).toBe(200);
  }
  expect([events.items, heldCount()]).toEqual([[], 2]);
  using third = await RawConnection.open(url);
  third.write(GET);
  expect((await third.readToClose()).toString()).toBe('');
  expect(events.items).toEqual(['too many']);

  first.socket.destroy();
  await untilHeld(1, heldCount);
  expect((await exchangeRaw(url, GET)).status).toBe(200);
  await untilHeld(1, heldCount);
});

test('a part of a head is waited for until it is a request, or its connection is closed', async () => {
  const { server, url, heldCount } = await start();
  await server.untilHeadsEnd();
  using asking = await RawConnection.open(url);
  using leaving = await RawConnection.open(url);
  for (const client of [asking, leaving]) {
    client.write(GET);
    await client.readResponse();
    client.write(GET.slice(0, 5));
  }
  const steps: string[] = [];
  // The server has read both when a third one, for which there is no room, has been closed.
  using third = await RawConnection.open(url);
  await third.readToClose();
  const ended = server.untilHeadsEnd().then(() => steps.push('ended'));
  asking.write(GET.slice(5));
  expect((await asking.readResponse()).status).toBe(200);
  expect(steps).toEqual([]);
  leaving.socket.destroy();
  await untilHeld(1, heldCount);
  await ended;
});

test('connections with a part of a head are destroyed alone, and all others on demand', async () => {
  const { server, url, heldCount } = await start();
  using idle = await RawConnection.open(url);
  using reading = await RawConnection.open(url);
  for (const client of [idle, reading]) {
    client.write(GET);
    await client.readResponse();
  }
  reading.write(GET.slice(0, 5));
  using third = await RawConnection.open(url);
  await third.readToClose();
  server.destroyHeads();
  await reading.readToClose();
  expect([heldCount(), idle.isClosed]).toEqual([1, false]);
  server.destroyConnections();
  expect(heldCount()).toBe(0);
  await idle.readToClose();
});

test('a server that is about to close says so in its responses, and one that has closed accepts nobody', async () => {
  const { server, url, port } = await start();
  server.startClosing();
  expect(server.phase).toBe('closing');
  expect((await exchangeRaw(url, GET)).header('connection')).toEqual(['close']);
  server.stopAccepting();
  server.startClosing();
  expect(server.phase).toBe('ending');
  const socket = connect({ host: '127.0.0.1', port });
  const [error] = await once(socket, 'error');
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
});

test('new settings hold for the next head', async () => {
  const { server, url } = await start();
  const request = `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100)}\r\n\r\n`;
  expect((await exchangeRaw(url, request)).status).toBe(200);
  server.configure({ ...SETTINGS, maxHeadBytes: 100 });
  expect(server.settings.maxHeadBytes).toBe(100);
  expect((await exchangeRaw(url, request)).status).toBe(431);
});

test('a handshake counts as a connection, and is told if it fails, but not if the client just leaves', async () => {
  await using authority = await createAuthority();
  const { server, url, events, heldCount } = await start(await authority.issue('server'));
  using plain = await RawConnection.open(url);
  plain.write(GET);
  expect((await plain.readToClose()).toString()).toMatch(
    /^HTTP\/1\.1 400 Bad Request\r\n.*use https:\/\/\n$/s,
  );
  expect(await events.next()).toBe('ERR_SSL_HTTP_REQUEST 127.0.0.1');
  await untilHeld(0, heldCount);

  using leaving = await RawConnection.open(url);
  await untilHeld(1, heldCount);
  leaving.socket.end();
  await untilHeld(0, heldCount);

  using binary = await RawConnection.open(url);
  binary.write('\x01\x02\x03\x04\x05\x06\x07\x08');
  await binary.readToClose();
  expect(await events.next()).toMatch(/^ERR_SSL_.* 127\.0\.0\.1$/);
  expect(events.items).toHaveLength(2);
  await untilHeld(0, heldCount);

  using trusting = await RawConnection.open(url, { ca: authority.ca.cert });
  trusting.write(GET);
  expect((await trusting.readResponse()).status).toBe(200);
  expect(heldCount()).toBe(1);
  using handshaking = await RawConnection.open(url);
  await untilHeld(2, heldCount);
  server.destroyConnections();
  await handshaking.readToClose();
  await untilHeld(0, heldCount);
});

test('an exchange knows the certificate of its client, in each of its requests', async () => {
  await using authority = await createAuthority();
  const certificate = await authority.issue('server');
  const { server, url, events } = await start(certificate);
  server.useTls({ ...toMaterial(certificate), clientCa: authority.ca.cert });
  const { cert, key } = await authority.issue('client');
  using client = await RawConnection.open(url, { ca: authority.ca.cert, cert, key });
  for (let round = 0; round < 2; round++) {
    client.write('GET /subject HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await client.readResponse()).body.toString()).toBe('CN=spangate client');
  }
  expect(events.items).toEqual([]);
});

test('a handshake that is not complete in time fails, by the time-out of when it began', async () => {
  await using authority = await createAuthority();
  const { server, url, events } = await start(await authority.issue('server'));
  server.configure({ ...SETTINGS, headTimeoutMs: 20 });
  using client = await RawConnection.open(url);
  await client.readToClose();
  expect(await events.next()).toBe('ERR_TLS_HANDSHAKE_TIMEOUT 127.0.0.1');
});

test('another certificate holds for the next handshake, and one that cannot be used changes nothing', async () => {
  await using authority = await createAuthority();
  const other = await authority.issueAuthority('other');
  const { server, url } = await start(await authority.issue('server'));
  const ask = async (issuer: { readonly ca: IssuedCertificate }) => {
    using client = await RawConnection.open(url, { ca: issuer.ca.cert, allowPartialTrustChain: true });
    client.write(GET);
    return (await client.readResponse()).status;
  };
  expect(await ask(authority)).toBe(200);
  const material = toMaterial(await other.issue('renewed'));
  expect(() => server.useTls({ ...material, pairs: [{ ...material.pairs[0], key: 'no key' }] })).toThrow();
  expect(await ask(authority)).toBe(200);
  server.useTls(material);
  await expect(ask(authority)).rejects.toThrow();
  expect(await ask(other)).toBe(200);
  // A server without TLS stays one.
  const plain = await start();
  plain.server.useTls(material);
  expect((await exchangeRaw(plain.url, GET)).status).toBe(200);
});
