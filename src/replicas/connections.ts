import { isIP, type Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { ReplicaConfig } from '../config/config.ts';
import { ClientPool } from './client-pool.ts';

/** The connection that carries an attempt, as far as a retry decision needs to know it. */
export interface Connection {
  /** Connected now. A failure while this is false is a failure to connect. */
  readonly isConnected: boolean;
  /** Exchanges begun on the present socket; above 1 the socket is a reused keep-alive one. */
  readonly exchangeCount: number;
  /** Whether a byte came since the present exchange began. */
  readonly hasAnswered: boolean;
  /**
   * The `system_fingerprint` member that came on the present socket last, as it was written. A socket ends in one
   * process, and that has one fingerprint; the next socket may end in its successor.
   */
  readonly fingerprint: { text: Buffer | null };
  /** Notes that a request is being written: to be called in that tick. */
  countExchange(): void;
}

/** An undici handler that is told which connection was chosen for it, before anything else. */
export interface ConnectionAwareHandler extends Dispatcher.DispatchHandler {
  connection: Connection | null;
}

/** All connections to one replica. */
export interface Connections {
  /** Sends on a free keep-alive connection, or on a new one; never queues behind another request. */
  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAwareHandler): void;
  /** Sends on a connection that was never used before and is closed afterwards. */
  dispatchOnFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAwareHandler): void;
  /** Closes every connection as soon as nothing is under way on it. Nothing more can be sent. */
  retire(): void;
  /** Destroys every connection. */
  close(): Promise<void>;
}

/** A client of one connection that counts what its present socket has carried. */
class CountingClient extends Client implements Connection {
  isConnected = false;
  exchangeCount = 0;
  fingerprint: { text: Buffer | null } = { text: null };
  readonly #link: { socket: Socket | null };
  #bytesReadBefore = 0;

  constructor(origin: string | URL, options: Client.Options, connector: buildConnector.connector) {
    const link: { socket: Socket | null } = { socket: null };
    super(origin, {
      ...options,
      connect: (target, callback) =>
        connector(target, (...result) => {
          link.socket = result[1];
          callback(...result);
        }),
    });
    this.#link = link;
    this.on('connect', () => {
      this.isConnected = true;
      this.exchangeCount = 0;
      this.fingerprint = { text: null };
    });
    this.on('disconnect', () => {
      this.isConnected = false;
    });
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const aware = handler as ConnectionAwareHandler;
    aware.connection = this;
    return super.dispatch(options, aware);
  }

  get hasAnswered(): boolean {
    return (this.#link.socket?.bytesRead ?? 0) > this.#bytesReadBefore;
  }

  countExchange(): void {
    this.exchangeCount++;
    this.#bytesReadBefore = this.#link.socket?.bytesRead ?? 0;
  }
}

/** The path of a replica's url, without a trailing slash; often empty. */
export function pathPrefixOf(url: string): string {
  const { pathname } = new URL(url);
  return pathname === '/' ? '' : pathname.replace(/\/$/, '');
}

/** How long connections take to be made, and how long they are used. */
export interface ConnectionTimeouts {
  readonly connectMs: number;
  readonly upstreamKeepAliveMs: number;
  /** The age at which a connection to a name takes no further request: the name may mean another address by then. */
  readonly nameTtlMs: number;
}

/**
 * Creates the connections to the origin of a url: a client for each request at one time (one alone would serialise
 * streams), HTTP/1.1 only, undici's own header and body time-outs off in favour of the gateway's.
 */
export function createConnections(
  { url, tlsName }: Pick<ReplicaConfig, 'url' | 'tlsName'>,
  timeouts: ConnectionTimeouts,
): Connections {
  const { origin, hostname } = new URL(url);
  const isName = isIP(hostname) === 0 && !hostname.startsWith('[');
  const clientOptions: Client.Options = {
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: timeouts.upstreamKeepAliveMs,
    // An engine's own hint (`Keep-Alive: timeout=5`) shortens ours, less a second for the way there.
    keepAliveMaxTimeout: timeouts.upstreamKeepAliveMs,
    keepAliveTimeoutThreshold: 1_000,
    // undici's own limit of 16 KiB on response headers is kept: engines send far less.
  };
  const connector = buildConnector({
    ...{ allowH2: false, timeout: timeouts.connectMs },
    ...(tlsName === undefined ? {} : { servername: tlsName }),
  });
  const createClient = () => new CountingClient(origin, clientOptions, connector);
  const clients = new ClientPool({
    createClient,
    maxAgeMs: isName ? timeouts.nameTtlMs : Number.POSITIVE_INFINITY,
  });
  const fresh = new Set<CountingClient>();

  return {
    dispatch(options, handler) {
      clients.dispatch(options, handler);
    },
    dispatchOnFresh(options, handler) {
      const client = createClient();
      fresh.add(client);
      client.dispatch({ ...options, reset: true }, handler);
      void client.close().finally(() => fresh.delete(client));
    },
    retire() {
      void clients.close();
    },
    async close() {
      await Promise.all([clients.destroy(), ...[...fresh].map((client) => client.destroy())]);
    },
  };
}
