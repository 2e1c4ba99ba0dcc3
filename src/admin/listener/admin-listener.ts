import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { atMostOncePerMinute } from '#base';
import type { Log } from '#otel/base';
import { BegunHandshakes, CertificateChoice, type TlsMaterial, toContextOptions } from '#wire/client';
import { AdminError } from '../admin-error.ts';
import { AdminConnection, type CallHandler } from './admin-connection.ts';

/** The most connections at one time. Opening one needs no token. */
const MAX_CONNECTIONS = 1_000;

/** The settings of the admin listener. */
export interface AdminListenerSettings {
  readonly maxHeaderBytes: number;
  /** Applies to the head, and again to the body. */
  readonly headersTimeoutMs: number;
  readonly keepAliveMs: number;
}

/**
 * The HTTP server of the admin API. It uses Node's strict parser, limits heads, bodies, connections and times, and handles
 * one call per connection at a time. Input that is not HTTP gets an error, and the connection is closed.
 */
export class AdminListener {
  readonly #server: Server;
  /** Null: it listens without TLS. */
  readonly #secured: SecuredServer | null;

  constructor(
    settings: AdminListenerSettings,
    tls: TlsMaterial | null,
    { log, handle }: { readonly log: Log<'info' | 'error'>; readonly handle: CallHandler },
  ) {
    const options = toServerOptions(settings);
    this.#secured = tls === null ? null : createSecuredServer(tls, options, log);
    this.#server = this.#secured?.server ?? createServer(options);
    // By default Node silently drops fields beyond 2,000. The size limit bounds them instead.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on(
      'drop',
      atMostOncePerMinute(() => log.error({ limit: MAX_CONNECTIONS }, 'admin connections refused')),
    );
    serve(this.#server, tls === null ? 'connection' : 'secureConnection', handle);
  }

  /**
   * Starts to listen and resolves with the port. Rejects with the system's error (EADDRINUSE, EACCES …). Port 0 picks a
   * free one.
   */
  listen(address: { readonly host: string; readonly port: number }): Promise<number> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(address, () => {
        server.off('error', reject);
        const bound = server.address();
        resolve(typeof bound === 'object' && bound !== null ? bound.port : address.port);
      });
    });
  }

  /** Applies the settings that can change at run time: the timeouts. */
  configure({ headersTimeoutMs, keepAliveMs }: Omit<AdminListenerSettings, 'maxHeaderBytes'>): void {
    this.#server.headersTimeout = headersTimeoutMs;
    this.#server.keepAliveTimeout = keepAliveMs;
  }

  /** Uses this material for handshakes from now on. A listener without TLS stays as it is. */
  useTls(material: TlsMaterial): void {
    this.#secured?.choice.use(material);
    this.#secured?.server.setSecureContext(toContextOptions(material));
  }

  /** Listens no more, and closes all connections. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function toServerOptions(settings: AdminListenerSettings): ServerOptions {
  return {
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
}

/** Handles what comes on the connections. `event` tells of a new one. */
function serve(server: Server, event: 'connection' | 'secureConnection', handle: CallHandler): void {
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
  server.on(event, connectionOf);
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
}

/** A server with TLS, and what picks its certificate. */
interface SecuredServer {
  readonly server: TlsServer;
  readonly choice: CertificateChoice;
}

function createSecuredServer(
  tls: TlsMaterial,
  options: ServerOptions,
  log: Log<'info' | 'error'>,
): SecuredServer {
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
  return { server, choice };
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

/**
 * Whether a request conforms to RFC 9112 where Node's parser is too lenient. Node accepts a missing or repeated Host
 * (section 3.2), and a request line without a version, which llhttp parses as HTTP/0.9.
 */
function isWellFormed({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (httpVersion === '1.0') return hosts.length <= 1;
  return httpVersion === '1.1' && hosts.length === 1;
}
