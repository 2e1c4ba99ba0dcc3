import { createServer, type Server, type Socket } from 'node:net';
import type { SharedLimit } from '#shared-memory';
import type { DeadlineClock } from '#wire';
import { ClientConnection } from './client-connection.ts';
import type {
  AcceptedConnection,
  ClientConnectionContext,
  ClientConnectionSettings,
  ListenerPhase,
} from './client-connection-context.ts';
import type { HttpExchange } from './http-exchange.ts';
import { TlsAcceptor, type TlsMaterial } from './tls-acceptor.ts';

/** The collaborators of a server. */
export interface HttpServerCollaborators {
  readonly clock: DeadlineClock;
  /** Limits the client connections of all workers together. */
  readonly connections: SharedLimit;
  /** Handles one request of a connection. The next request comes when this one is finished. */
  readonly handle: (exchange: HttpExchange) => void;
  /** A connection was closed unread because the limit was reached. */
  readonly onTooMany: () => void;
  /**
   * A TLS handshake failed, but not because the client left, as TCP probes do. `code` is the error code of Node or
   * OpenSSL, `address` the client's.
   */
  readonly onHandshakeFailed: (code: string, address: string | undefined) => void;
  /** A bug in the gateway ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/** Where to listen. `reusePort`: share the port with other sockets that set it too (SO_REUSEPORT). */
export interface HttpServerAddress {
  readonly host: string;
  readonly port: number;
  readonly reusePort?: boolean;
}

/** A listener for HTTP/1.1 and its connections. */
export class HttpServer implements ClientConnectionContext {
  readonly clock: DeadlineClock;
  readonly #collaborators: HttpServerCollaborators;
  readonly #server: Server;
  readonly #open = new Set<AcceptedConnection>();
  /** Null: connections are not encrypted. */
  #tls: { readonly material: TlsMaterial; readonly acceptor: TlsAcceptor } | null;
  /** The sockets whose handshake was begun, until they close. */
  readonly #encrypted = new Set<Socket>();
  #settings: ClientConnectionSettings;
  #phase: ListenerPhase = 'serving';
  /** Called when a head has been read, or a connection is closed. */
  #onHeadEnd: () => void = () => undefined;

  /** `tls`: what TLS handshakes use; null: connections are not encrypted. Throws OpenSSL's error if it is unusable. */
  constructor(
    settings: ClientConnectionSettings,
    tls: TlsMaterial | null,
    collaborators: HttpServerCollaborators,
  ) {
    this.#settings = settings;
    this.#collaborators = collaborators;
    this.clock = collaborators.clock;
    this.#tls = tls === null ? null : this.#prepareTls(tls);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
  }

  get settings(): ClientConnectionSettings {
    return this.#settings;
  }

  get phase(): ListenerPhase {
    return this.#phase;
  }

  /** Starts listening and resolves with the port; rejects with the system's error (EADDRINUSE, EACCES …). */
  listen(address: HttpServerAddress): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(address, () => {
        this.#server.off('error', reject);
        const bound = this.#server.address();
        resolve(typeof bound === 'object' && bound !== null ? bound.port : address.port);
      });
    });
  }

  /** Applies new settings. Deadlines that are already set do not change. */
  configure(settings: ClientConnectionSettings): void {
    const isOtherTimeout = settings.headTimeoutMs !== this.#settings.headTimeoutMs;
    this.#settings = settings;
    if (isOtherTimeout && this.#tls !== null) this.#tls = this.#prepareTls(this.#tls.material);
  }

  /** Uses this material for handshakes from now on. Throws OpenSSL's error, and changes nothing, if it is unusable. */
  useTls(material: TlsMaterial): void {
    if (this.#tls !== null) this.#tls = this.#prepareTls(material);
  }

  /** Each response that begins from now on is the last of its connection, and sends `Connection: close`. */
  startClosing(): void {
    if (this.#phase === 'serving') this.#phase = 'closing';
  }

  /** Stops accepting. Idle connections close now, others after their response, even if it announced keep-alive. */
  stopAccepting(): void {
    this.#phase = 'ending';
    this.#server.close();
    for (const connection of [...this.#open]) connection.closeIfIdle();
  }

  /** Resolves when no connection has a part of a head: each of these has become a request, or is closed. */
  async untilHeadsEnd(): Promise<void> {
    while (this.#readingHeads().length > 0) {
      await new Promise<void>((resolve) => {
        this.#onHeadEnd = resolve;
      });
    }
  }

  /** Destroys the connections that have only a part of a head. */
  destroyHeads(): void {
    for (const connection of this.#readingHeads()) connection.destroy();
  }

  /** Destroys every connection. */
  destroyConnections(): void {
    for (const connection of [...this.#open]) connection.destroy();
    for (const socket of this.#encrypted) socket.destroy();
  }

  handle(exchange: HttpExchange): void {
    this.#onHeadEnd();
    this.#collaborators.handle(exchange);
  }

  reportDefect(error: unknown): void {
    this.#collaborators.onDefect(error);
  }

  onClosed(connection: AcceptedConnection): void {
    if (this.#open.delete(connection)) this.#collaborators.connections.release(1);
    this.#onHeadEnd();
  }

  #readingHeads(): readonly AcceptedConnection[] {
    return [...this.#open].filter(({ isReadingHead }) => isReadingHead);
  }

  #accept(socket: Socket): void {
    const { connections, onTooMany } = this.#collaborators;
    if (!connections.tryAcquire(1)) {
      socket.on('error', () => undefined);
      socket.destroy();
      onTooMany();
      return;
    }
    if (this.#tls === null) {
      this.#serve(socket);
      return;
    }
    this.#encrypted.add(socket);
    socket.once('close', () => this.#encrypted.delete(socket));
    this.#tls.acceptor.accept(socket);
  }

  #serve(socket: Socket): void {
    const connection = new ClientConnection(socket, this);
    this.#open.add(connection);
    if (this.#phase === 'ending') connection.closeIfIdle();
  }

  #prepareTls(material: TlsMaterial) {
    const acceptor = new TlsAcceptor(material, {
      handshakeTimeoutMs: this.#settings.headTimeoutMs,
      onSecure: (socket) => this.#serve(socket),
      onFailed: (code, address) => {
        this.#collaborators.connections.release(1);
        if (code !== 'ECONNRESET') this.#collaborators.onHandshakeFailed(code, address);
      },
    });
    return { material, acceptor };
  }
}
