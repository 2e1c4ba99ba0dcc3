import { createServer, type Server, type Socket } from 'node:net';
import {
  ClientConnection,
  type ClientConnectionContext,
  type ClientConnectionSettings,
} from './client-connection.ts';
import type { DeadlineClock } from './deadline-clock.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { SharedLimit } from './shared-limit.ts';

/** Whom a server works with. */
export interface HttpServerCollaborators {
  readonly clock: DeadlineClock;
  /** Client connections, over all workers. */
  readonly connections: SharedLimit;
  /** Handles one request of one connection; the next comes when this one is over. */
  readonly handle: (exchange: HttpExchange) => void;
  /** A connection was closed unread since there are as many as may be. */
  readonly onTooMany: () => void;
  /** A defect of ours ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/** Where to listen. `reusePort`: together with others who say so (SO_REUSEPORT). */
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
  readonly #open = new Set<ClientConnection>();
  #settings: ClientConnectionSettings;
  #phase: 'serving' | 'closing' | 'ending' = 'serving';

  constructor(settings: ClientConnectionSettings, collaborators: HttpServerCollaborators) {
    this.#settings = settings;
    this.#collaborators = collaborators;
    this.clock = collaborators.clock;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.accept(socket));
  }

  get settings(): ClientConnectionSettings {
    return this.#settings;
  }

  get phase(): 'serving' | 'closing' | 'ending' {
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

  /** Serves a connection that was accepted elsewhere, for example by a TLS server. */
  accept(socket: Socket): void {
    const { connections, onTooMany } = this.#collaborators;
    if (!connections.tryTake(1)) {
      socket.on('error', () => undefined);
      socket.destroy();
      onTooMany();
      return;
    }
    this.#open.add(new ClientConnection(socket, this));
  }

  /** Takes over other times and sizes; deadlines that are set stay. */
  configure(settings: ClientConnectionSettings): void {
    this.#settings = settings;
  }

  /** From now on each response that begins is the last of its connection, and says so. */
  startClosing(): void {
    if (this.#phase === 'serving') this.#phase = 'closing';
  }

  /** Stops accepting. Idle connections end now, others with their response, whatever it promised. */
  stopAccepting(): void {
    this.#phase = 'ending';
    this.#server.close();
    for (const connection of [...this.#open]) connection.closeWhenIdle();
  }

  /** Destroys every connection. */
  destroyConnections(): void {
    for (const connection of [...this.#open]) connection.destroy();
  }

  handle(exchange: HttpExchange): void {
    this.#collaborators.handle(exchange);
  }

  reportDefect(error: unknown): void {
    this.#collaborators.onDefect(error);
  }

  onClosed(connection: ClientConnection): void {
    if (this.#open.delete(connection)) this.#collaborators.connections.giveBack(1);
  }
}
