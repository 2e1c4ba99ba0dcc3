import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { atMostOncePerMinute } from '../at-most-once-per-minute.ts';
import { AdminConnection, type CallHandler } from './admin-connection.ts';
import { Refusal } from './refusal.ts';

/** Connections at one time. Nobody needs a token to open one. */
const MAX_CONNECTIONS = 1_000;

/** What the admin listener is told. */
export interface AdminListenerSettings {
  readonly maxHeaderBytes: number;
  /** For a head, and again for a body. */
  readonly headersTimeoutMs: number;
  readonly keepAliveMs: number;
}

/** Where the listener tells that it refuses connections. A pino logger fits. */
export interface AdminListenerLog {
  error(fields: object, message: string): void;
}

/**
 * Creates the HTTP server of the admin API: Node's strict parser, with bounded heads, bodies, connections and times,
 * and one call of a connection at a time. What is not HTTP is answered and closed.
 */
export function createAdminListener(
  settings: AdminListenerSettings,
  log: AdminListenerLog,
  handle: CallHandler,
): Server {
  const server = createServer({
    maxHeaderSize: settings.maxHeaderBytes,
    headersTimeout: settings.headersTimeoutMs,
    // The connection bounds the body's time: it has to end in an answer.
    requestTimeout: 0,
    keepAliveTimeout: settings.keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, settings.headersTimeoutMs),
    insecureHTTPParser: false,
    // Checked below, together with what Node lets pass.
    requireHostHeader: false,
  });
  // Node drops fields beyond 2,000 silently; the size limit bounds them instead.
  server.maxHeadersCount = 0;
  server.maxConnections = MAX_CONNECTIONS;
  server.on(
    'drop',
    atMostOncePerMinute(() => log.error({ limit: MAX_CONNECTIONS }, 'admin connections refused')),
  );

  const connections = new WeakMap<Duplex, AdminConnection>();
  const connectionOf = (socket: Duplex): AdminConnection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new AdminConnection(socket as Socket, handle, () => server.headersTimeout);
    connections.set(socket, connection);
    return connection;
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse, acceptBody: () => void) => {
    const connection = connectionOf(request.socket);
    if (isWellFormed(request)) connection.take({ request, response, acceptBody });
    else connection.refuseNext(new Refusal('bad_request'));
  };
  server.on('connection', connectionOf);
  server.on('request', (request, response) => onRequest(request, response, () => undefined));
  // Another expectation than 100-continue may be ignored (RFC 9110 10.1.1).
  server.on('checkExpectation', (request, response) => onRequest(request, response, () => undefined));
  server.on('checkContinue', (request, response) =>
    onRequest(request, response, () => response.writeContinue()),
  );
  server.on('connect', (_request, socket) => connectionOf(socket).refuseNext(new Refusal('not_found')));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    connectionOf(socket).fail(error.code ?? ''),
  );
  return server;
}

/** Takes over the settings that can change while it serves: its times. */
export function configureAdminListener(
  server: Server,
  { headersTimeoutMs, keepAliveMs }: Pick<AdminListenerSettings, 'headersTimeoutMs' | 'keepAliveMs'>,
): void {
  server.headersTimeout = headersTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
}

/** Starts listening; rejects with the system's error (EADDRINUSE, EACCES …). Port 0 picks a free one. */
export function listenForAdmin(
  server: Server,
  address: { readonly host: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : address.port);
    });
  });
}

/**
 * What Node's parser lets pass and RFC 9112 does not: no Host or several (3.2), and a request line without
 * a version, which llhttp takes for HTTP/0.9.
 */
function isWellFormed({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (httpVersion === '1.0') return hosts.length <= 1;
  return httpVersion === '1.1' && hosts.length === 1;
}
