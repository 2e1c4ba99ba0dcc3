import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { Pool } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import { DeadlineClock } from '#wire';
import { SharedReads } from '#wire/upstream';
import { createProbeConnections } from '../../../src/replicas/data/connections.ts';
import { createUpstreamConnections } from '../../../src/replicas/data/upstream.ts';
import { ScriptedTime } from '../../wire/scripted-time.ts';
import { open } from '../../wire/upstream/collect-response.ts';

const HOUR_MS = 3_600_000;
/** Some containers have no IPv6. */
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some((each) => each.address === '::1'),
);

let authority: TestAuthority;
let certificate: IssuedCertificate;

beforeAll(async () => {
  authority = await createAuthority();
  certificate = await authority.issue('server');
});

afterAll(() => authority[Symbol.asyncDispose]());

/** Listens on a free port of an address, until the test is over. */
async function listenAt(server: Server, address = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The connections to a url: those to a name are used for an hour, and time passes when the test says so. */
function connectTo(url: string) {
  const time = new ScriptedTime();
  const sharedReads = new SharedReads();
  const connections = createUpstreamConnections({ url, tls: tlsOf() } as never, {
    timeouts: { connectMs: 60_000, upstreamKeepAliveMs: 10 * HOUR_MS, nameTtlMs: HOUR_MS },
    clock: new DeadlineClock(1, time),
    sharedReads,
    onDefect: () => undefined,
  });
  onTestFinished(() => connections.destroy());
  return { time, connections, sharedReads };
}

const tlsOf = () => ({ verify: true, ca: authority.ca.cert, cert: null, key: null });

describe('a connection of the data plane', () => {
  test.each<[address: string, host: string, isKept: boolean]>([
    ['127.0.0.1', '127.0.0.1', true],
    ...(HAS_IPV6 ? ([['::1', '[::1]', true]] satisfies [string, string, boolean][]) : []),
    ['127.0.0.1', 'localhost', false],
  ])('to %s at the host %s is used for as long as it stays open: %s', async (address, host, isKept) => {
    const port = await listenAt(createServer(), address);
    const { time, connections } = connectTo(`http://${host}:${port}`);
    const connection = await open(connections);
    connections.returnUnused(connection);
    time.ms = 2 * HOUR_MS;
    connections.clock.nowMs();
    expect(connections.takeIdle()).toBe(isKept ? connection : null);
  });

  test.each([
    ['http', 80],
    ['https', 443],
  ])('to a url of %s without a port goes to %i', async (protocol, port) => {
    // Nothing listens at this address.
    const { connections } = connectTo(`${protocol}://127.83.12.9`);
    await expect(open(connections)).rejects.toMatchObject({ code: 'ECONNREFUSED', port });
  });

  test('reads into the memory that all share, unless it is encrypted', async () => {
    const plain = connectTo(`http://127.0.0.1:${await listenAt(createServer())}`);
    const ofPlain = vi.spyOn(plain.sharedReads, 'forSocket');
    await open(plain.connections);
    expect(ofPlain).toHaveBeenCalledTimes(1);
    const port = await listenAt(createTlsServer({ cert: certificate.cert, key: certificate.key }));
    const encrypted = connectTo(`https://127.0.0.1:${port}`);
    const ofEncrypted = vi.spyOn(encrypted.sharedReads, 'forSocket');
    await open(encrypted.connections);
    expect(ofEncrypted).not.toHaveBeenCalled();
  });

  test('speaks HTTP/1.1, and resumes the TLS session of the one before it', async () => {
    const sockets = new EventLog<TLSSocket>();
    const { cert, key } = certificate;
    const server = createTlsServer({ cert, key, maxVersion: 'TLSv1.2', ALPNProtocols: ['h2', 'http/1.1'] });
    server.on('secureConnection', (socket: TLSSocket) => sockets.push(socket));
    const { connections } = connectTo(`https://127.0.0.1:${await listenAt(server)}`);
    await open(connections);
    const first = await sockets.next();
    await open(connections);
    const second = await sockets.next();
    expect([first.alpnProtocol, first.isSessionReused(), second.isSessionReused()]).toEqual([
      'http/1.1',
      false,
      true,
    ]);
  });
});

describe('a probe', () => {
  const probe = (url: string) => {
    const connections = createProbeConnections({ url, tls: tlsOf() } as never, 60_000);
    onTestFinished(() => void connections.destroy());
    return connections;
  };

  test('speaks HTTP/1.1, also where the server would take HTTP/2', async () => {
    const { cert, key } = certificate;
    const server = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
      response.end(request.httpVersion),
    );
    const port = await listenAt(server as unknown as Server);
    const { body } = await probe(`https://127.0.0.1:${port}`).request({ method: 'GET', path: '/' });
    expect(await body.text()).toBe('1.1');
  });

  test('does not wait behind another one', async () => {
    const sockets = new EventLog<Socket>();
    const server: HttpServer = createHttpServer(({ socket }) => sockets.push(socket));
    const connections = probe(`http://127.0.0.1:${await listenAt(server)}`);
    for (const path of ['/1', '/2']) {
      connections.request({ method: 'GET', path }).catch(() => undefined);
    }
    expect(await sockets.next()).not.toBe(await sockets.next());
  });

  test('has no deadline but its own: neither for its head nor for its body', async () => {
    const answers = new Map<string, () => void>();
    const asked = new EventLog<string>();
    const server = createHttpServer((request, response) => {
      const path = request.url ?? '';
      if (path.endsWith('body')) response.write('be');
      answers.set(path, () => response.end(path.endsWith('body') ? 'gun' : 'begun'));
      asked.push(path);
    });
    const origin = `http://127.0.0.1:${await listenAt(server)}`;
    const connections = probe(origin);
    const ask = async (path: string) => (await connections.request({ method: 'GET', path })).body.text();
    const texts = Promise.all(['/head', '/body'].map(ask));
    texts.catch(() => undefined);
    await asked.until(() => asked.items.length === 2);
    // Others with the shortest deadlines, which began later, have failed before the answers come.
    const hasty = new Pool(origin, { headersTimeout: 1, bodyTimeout: 1 });
    onTestFinished(() => void hasty.destroy());
    const late = async (path: string) => (await hasty.request({ method: 'GET', path })).body.text();
    await Promise.all(['/late-head', '/late-body'].map((path) => expect(late(path)).rejects.toThrow()));
    for (const path of ['/head', '/body']) answers.get(path)?.();
    expect(await texts).toEqual(['begun', 'begun']);
  });
});
