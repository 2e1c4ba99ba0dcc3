import type { Client, Dispatcher } from 'undici';

/** An undici client of one connection, which tells whether it has it. */
export interface PooledClient extends Client {
  readonly isConnected: boolean;
}

export interface ClientPoolSettings<C extends PooledClient> {
  readonly createClient: () => C;
  /** The age at which a connection takes no further request; Infinity: none. */
  readonly maxAgeMs: number;
}

/**
 * The connections to one origin: as many as there are requests at one time. The one used last is used next, so that
 * those which are too many come to their keep-alive time-out. undici's own pool looks through all its clients for a
 * free one, which at 4,000 streams takes longer than the rest of a request.
 */
export class ClientPool<C extends PooledClient> {
  readonly #settings: ClientPoolSettings<C>;
  /** When each was made. */
  readonly #clients = new Map<C, number>();
  /** The connected ones without a request, the one used last at the end. */
  readonly #idle: C[] = [];

  constructor(settings: ClientPoolSettings<C>) {
    this.#settings = settings;
  }

  /** How many there are, with a request or without. */
  get size(): number {
    return this.#clients.size;
  }

  /** Sends on a free connection, or on a new one. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const client = this.#takeIdle() ?? this.#create();
    client.dispatch(options, handler);
    // One request a connection (`pipelining: 1`): it is taken until it drains. What undici refused it never took.
    if (client.stats.size === 0) this.#release(client);
  }

  /** Closes every connection, each when its request is over. */
  async close(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#clients.keys()].map((client) => client.close()));
  }

  /** Destroys every connection. */
  async destroy(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#clients.keys()].map((client) => client.destroy()));
  }

  #takeIdle(): C | undefined {
    for (;;) {
      const client = this.#idle.pop();
      if (client === undefined || this.#isYoung(client)) return client;
      this.#discard(client);
    }
  }

  #isYoung(client: C): boolean {
    return performance.now() - (this.#clients.get(client) ?? 0) < this.#settings.maxAgeMs;
  }

  #create(): C {
    const client = this.#settings.createClient();
    this.#clients.set(client, performance.now());
    client.on('drain', () => this.#release(client));
    client.on('disconnect', () => {
      const index = this.#idle.indexOf(client);
      if (index === -1) return;
      this.#idle.splice(index, 1);
      this.#discard(client);
    });
    return client;
  }

  /** A request is over. What could not connect, or lost its connection meanwhile, is not used again. */
  #release(client: C): void {
    if (client.closed || client.destroyed) this.#clients.delete(client);
    else if (client.isConnected) this.#idle.push(client);
    else this.#discard(client);
  }

  #discard(client: C): void {
    this.#clients.delete(client);
    void client.close();
  }
}
