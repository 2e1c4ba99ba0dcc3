import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { atMostOncePerMinute } from '#base';
import { BegunHandshakes, CertificateChoice, type TlsMaterial, toContextOptions } from '#wire/client';
import { AdminError } from '../admin-error.ts';
import { AdminConnection, type CallHandler } from './admin-connection.ts';

/** The most connections at one time. Opening one needs no token. */
const MAX_CONNECTIONS = 1_000;

/** The certificates of listeners with TLS. */
const choices = new WeakMap<Server, CertificateChoice>();

/** The settings of the admin listener. */
export interface AdminListenerSettings {
  readonly maxHeaderBytes: number;
  /** Applies to the head, and again to the body. */
  readonly headersTimeoutMs: number;
  readonly keepAliveMs: number;
}

/** Where refused connections and failed handshakes are logged. A pino logger fits. */
export interface AdminListenerLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * Creates the HTTP server of the admin API; with TLS if `tls` is not null. It uses Node's strict parser, limits heads,
 * bodies, connections and times, and handles one call per connection at a time. Input that is not HTTP gets an error, and
 * the connection is closed.
 */
export function createAdminListener(
  settings: AdminListenerSettings,
  tls: TlsMaterial | null,
  { log, handle }: { readonly log: AdminListenerLog; readonly handle: CallHandler },
): Server {
  const options: ServerOptions = {
    // Node refuses a head of this size, too.
    maxHeaderSize: settings.maxHeaderBytes + 1,
    headersTimeout: settings.headersTimeoutMs,
    // AdminConnection limits the time of a body, so that the client gets a response.
    requestTimeout: 0,
    keepAliveTimeout: settings.keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, settings.headersTimeoutMs),
    insecureHTTPParser: false,
    // `isWellFormed` checks this.
    requireHostHeader: false,
  };
  const server = tls === null ? createServer(options) : createSecuredServer(tls, options, log);
  // By default Node silently drops fields beyond 2,000. The size limit bounds them instead.
  server.maxHeadersCount = 0;
  server.maxConnections = MAX_CONNECTIONS;
  server.on(
    'drop',
    atMostOncePerMinute(() => log.error({ limit: MAX_CONNECTIONS }, 'admin connections refused')),
  );

  const connections = new Map<Duplex, AdminConnection>();
  // The next one finds a place, unless all are in use.
  server.on('drop', () => {
    for (const connection of connections.values()) connection.closeIfIdle();
  });
  const connectionOf = (socket: Duplex): AdminConnection => {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new AdminConnection(socket as Socket, handle, () => server.headersTimeout);
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    return connection;
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse, acceptBody: () => void) => {
    const connection = connectionOf(request.socket);
    if (isWellFormed(request)) connection.accept({ request, response, acceptBody });
    else connection.rejectNext(new AdminError('bad_request'));
  };
  server.on(tls === null ? 'connection' : 'secureConnection', connectionOf);
  server.on('request', (request, response) => onRequest(request, response, () => undefined));
  // A server may ignore any expectation other than 100-continue (RFC 9110 10.1.1).
  server.on('checkExpectation', (request, response) => onRequest(request, response, () => undefined));
  server.on('checkContinue', (request, response) =>
    onRequest(request, response, () => response.writeContinue()),
  );
  server.on('connect', (_request, socket) => connectionOf(socket).rejectNext(new AdminError('not_found')));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    connectionOf(socket).fail(error.code ?? ''),
  );
  return server;
}

function createSecuredServer(tls: TlsMaterial, options: ServerOptions, log: AdminListenerLog): Server {
  const choice = new CertificateChoice(tls);
  const server = createTlsServer({
    ...options,
    ...toContextOptions(tls),
    ...toHandshakeOptions(tls),
    SNICallback: choice.sniCallback,
  });
  const timers = new HandshakeTimers();
  const handshakes = new BegunHandshakes();
  const logFailed = atMostOncePerMinute((code: string, address: string | undefined) =>
    log.info(
      { code, client_address: address, listener: 'admin' },
      'TLS handshake failed; logged at most once per minute',
    ),
  );
  server.prependListener('connection', (socket: Socket) => {
    // A client that closes its side during the handshake has given up.
    socket.allowHalfOpen = false;
    timers.begin(socket, server.headersTimeout);
    handshakes.begin(socket);
  });
  server.prependListener('tlsClientError', ({ code = 'unknown' }: NodeJS.ErrnoException, socket) => {
    handshakes.fail(socket, code);
    if (code !== 'ECONNRESET') logFailed(code, socket.remoteAddress);
  });
  server.prependListener('secureConnection', (socket) => {
    socket.allowHalfOpen = true;
    timers.end(socket);
  });
  choices.set(server, choice);
  return server;
}

function toHandshakeOptions({ clientCa }: TlsMaterial) {
  const asksForCertificate = clientCa !== null;
  return {
    ALPNProtocols: ['http/1.1'],
    requestCert: asksForCertificate,
    rejectUnauthorized: asksForCertificate,
    // HandshakeTimers limits the time: Node's own cannot change at run time.
    handshakeTimeout: 2 ** 31 - 1,
  };
}

/**
 * Closes connections whose handshake takes too long. The TLS socket that Node makes of a connection has the same
 * addresses, and nothing else in common with it.
 */
class HandshakeTimers {
  readonly #timers = new Map<string, NodeJS.Timeout>();

  begin(socket: Socket, timeoutMs: number): void {
    const key = toKey(socket);
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    this.#timers.set(key, timer);
    socket.once('close', () => {
      clearTimeout(timer);
      if (this.#timers.get(key) === timer) this.#timers.delete(key);
    });
  }

  end(socket: Socket): void {
    clearTimeout(this.#timers.get(toKey(socket)));
  }
}

function toKey({ localAddress, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}

/** Uses this material for handshakes from now on. A listener without TLS stays as it is. */
export function useAdminTls(server: Server, material: TlsMaterial): void {
  if (!(server instanceof TlsServer)) return;
  choices.get(server)?.use(material);
  server.setSecureContext(toContextOptions(material));
}

/** Applies the settings that can change at run time: the timeouts. */
export function configureAdminListener(
  server: Server,
  { headersTimeoutMs, keepAliveMs }: Pick<AdminListenerSettings, 'headersTimeoutMs' | 'keepAliveMs'>,
): void {
  server.headersTimeout = headersTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
}

/**
 * Starts to listen and resolves with the port. Rejects with the system's error (EADDRINUSE, EACCES …). Port 0 picks a
 * free one.
 */
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
 * Whether a request conforms to RFC 9112 where Node's parser is too lenient. Node accepts a missing or repeated Host
 * (section 3.2), and a request line without a version, which llhttp parses as HTTP/0.9.
 */
function isWellFormed({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (httpVersion === '1.0') return hosts.length <= 1;
  return httpVersion === '1.1' && hosts.length === 1;
}
