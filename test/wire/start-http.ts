import { randomBytes } from 'node:crypto';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { allocateLimit, SharedLimit } from '#shared-memory';
import type { ClientConnectionSettings, HttpExchange, TlsMaterial } from '#wire/client';
import { HttpServer } from '#wire/client';
import { UpstreamConnections } from '#wire/upstream';
import type { CertificatePair } from '../../src/wire/client/tls-acceptor.ts';
import { DeadlineClock, type TimeSource } from '../../src/wire/deadline-clock.ts';

/** Settings with time-outs that no test reaches. */
const SETTINGS: ClientConnectionSettings = {
  maxHeadBytes: 16 * 1024,
  headTimeoutMs: 60_000,
  keepAliveMs: 60_000,
  sendTimeoutMs: 60_000,
  maxDiscardedBytes: 64 * 1024,
};

/** A server on a free local port, and the defects that it reported. */
export interface StartedHttp extends Disposable {
  readonly url: string;
  readonly server: HttpServer;
  readonly defects: readonly unknown[];
}

/** Starts a server that handles requests with `handle`; with TLS if a certificate is given, and with the test's time. */
export async function startHttp(
  handle: (exchange: HttpExchange) => void,
  settings: Partial<ClientConnectionSettings> = {},
  certificate?: CertificatePair,
  time?: TimeSource,
): Promise<StartedHttp> {
  const defects: unknown[] = [];
  const server = new HttpServer(
    { ...SETTINGS, ...settings },
    certificate === undefined ? null : toMaterial(certificate),
    {
      clock: new DeadlineClock(5, time),
      connections: new SharedLimit(allocateLimit(1, 1_000), 0),
      handle,
      onTooMany: () => undefined,
      onHandshakeFailed: () => undefined,
      onDefect: (error) => defects.push(error),
    },
  );
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  return { url, server, defects, [Symbol.dispose]: () => stop(server) };
}

function toMaterial({ cert, key }: CertificatePair): TlsMaterial {
  return { pairs: [{ cert, key }], clientCa: null, minVersion: 'TLSv1.2', ticketKeys: randomBytes(48) };
}

function stop(server: HttpServer): void {
  server.stopAccepting();
  server.destroyConnections();
}

/** Connections to the server at a URL; over TLS if a certificate authority is given. */
export function connectTo(url: string, ca?: string): UpstreamConnections {
  const { hostname: host, port } = new URL(url);
  const connect = (callback: (error: Error | null, socket: Socket | null) => void) => {
    const socket =
      ca === undefined
        ? connectTcp({ host, port: Number(port) })
        : connectTls({ host, port: Number(port), ca, ALPNProtocols: ['http/1.1'] });
    socket.once(ca === undefined ? 'connect' : 'secureConnect', () => callback(null, socket));
    socket.once('error', (error) => callback(error, null));
  };
  const settings = { connect, keepAliveMs: 60_000, maxAgeMs: Number.POSITIVE_INFINITY };
  return new UpstreamConnections(
    {
      ...settings,
      onDefect: (error) => {
        throw error;
      },
    },
    new DeadlineClock(5),
  );
}
