import type { Socket } from 'node:net';
import type { DeadlineClock } from '#wire';
import type { SocketReads } from './shared-reads.ts';
import { UpstreamConnection, type UpstreamConnectionOwner } from './upstream-connection.ts';
import type { RunningStream } from './upstream-request.ts';

/**
 * Opens a connection, and calls back with it or with an error. `reads`: the source of its reads if they do not arrive
 * as `data` events.
 */
export type Connector = (
  callback: (error: Error | null, socket: Socket | null, reads?: SocketReads) => void,
) => void;

/** How connections are opened and how long they are kept. */
export interface UpstreamConnectionsSettings {
  readonly connect: Connector;
  /** How long a connection without a request is kept open. */
  readonly keepAliveMs: number;
  /** The age at which a connection accepts no further request; Infinity for no limit. */
  readonly maxAgeMs: number;
  /** A bug in the gateway ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/** A stream that runs. */
interface SeenStream extends Pick<UpstreamConnection, 'silentSinceMs' | 'sentMs' | 'isAnswering'> {
  readonly stream: RunningStream;
}

/** Subtracted from the server's time-out (`Keep-Alive: timeout=5`), to allow for the time on the network. */
const HINT_MARGIN_MS = 1_000;
/** How long no connection is reused after the server sent unsolicited bytes. */
const NO_REUSE_MS = 60_000;

/**
 * The connections to one server, one for each concurrent request. The most recently used connection is reused first, so
 * that surplus connections reach their keep-alive time-out.
 */
export class UpstreamConnections implements UpstreamConnectionOwner {
  readonly clock: DeadlineClock;
  readonly #settings: UpstreamConnectionsSettings;
  readonly #all = new Set<UpstreamConnection>();
  /** The connections without a request. The most recently used one is last. */
  readonly #idle: UpstreamConnection[] = [];
  #isRetired = false;
  #isDestroyed = false;
  #noReuseUntilMs = 0;
  /** When the last response was complete; null: none was. */
  #endedMs: number | null = null;
  /** When the last request was sent of those whose streams have ended; null: none has. */
  #endedSentMs: number | null = null;

  constructor(settings: UpstreamConnectionsSettings, clock: DeadlineClock) {
    this.#settings = settings;
    this.clock = clock;
  }

  /** Removes and returns an idle connection that can be reused; null if there is none. */
  takeIdle(): UpstreamConnection | null {
    const nowMs = this.clock.cachedNowMs;
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (nowMs - connection.connectedMs < this.#settings.maxAgeMs) return connection;
      connection.destroy();
    }
  }

  /** Opens a connection. */
  open(callback: (error: Error | null, connection: UpstreamConnection | null) => void): void {
    this.#settings.connect((error, socket, reads) => {
      if (error !== null || socket === null) {
        callback(error ?? new Error('no connection'), null);
        return;
      }
      const connection = new UpstreamConnection({ socket, reads }, this);
      this.#all.add(connection);
      if (this.#isDestroyed) connection.destroy();
      callback(null, connection);
    });
  }

  /** Takes back a connection from `takeIdle` or `open` that carried no request. */
  returnUnused(connection: UpstreamConnection): void {
    if (!connection.isClosed) this.onFree(connection);
  }

  /** Closes each connection as soon as it has no request in flight. */
  retire(): void {
    this.#isRetired = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  /** Destroys all connections. Requests in flight fail. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const connection of [...this.#all]) connection.abort();
  }

  onFree(connection: UpstreamConnection): void {
    if (this.#isRetired || this.clock.cachedNowMs < this.#noReuseUntilMs) {
      connection.destroy();
      return;
    }
    const { keepAliveHintMs: hintMs } = connection;
    const hintedMs = hintMs === null ? Number.POSITIVE_INFINITY : hintMs - HINT_MARGIN_MS;
    const keepAliveMs = Math.min(this.#settings.keepAliveMs, hintedMs);
    if (keepAliveMs <= 0) {
      connection.destroy();
      return;
    }
    connection.waitIdle(keepAliveMs);
    this.#idle.push(connection);
  }

  onClosed(connection: UpstreamConnection): void {
    this.#all.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
  }

  onResponseEnd(sentMs: number | null): void {
    this.#endedMs = this.clock.cachedNowMs;
    if (sentMs !== null && (this.#endedSentMs === null || sentMs > this.#endedSentMs)) {
      this.#endedSentMs = sentMs;
    }
  }

  /** Whether any connection is open. */
  get hasOpen(): boolean {
    return this.#all.size > 0;
  }

  /** When the last request was sent of those whose streams have ended; null: none has. */
  get endedSentMs(): number | null {
    return this.#endedSentMs;
  }

  /**
   * When the server last sent something, and since when it owes the longest: monotonic milliseconds; null if never.
   *
   * @param onStream called with each stream that runs
   */
  observeSilence(onStream?: (seen: SeenStream) => void): {
    readonly heardMs: number | null;
    readonly waitingSinceMs: number | null;
  } {
    let heardMs = this.#endedMs;
    let waitingSinceMs: number | null = null;
    for (const connection of this.#all) {
      const { silentSinceMs, isAnswering, stream, sentMs } = connection;
      if (stream !== null) onStream?.({ stream, silentSinceMs, sentMs, isAnswering });
      if (silentSinceMs === null) continue;
      if (isAnswering && (heardMs === null || silentSinceMs > heardMs)) heardMs = silentSinceMs;
      if (waitingSinceMs === null || silentSinceMs < waitingSinceMs) waitingSinceMs = silentSinceMs;
    }
    return { heardMs, waitingSinceMs };
  }

  reportDefect(error: unknown): void {
    this.#settings.onDefect(error);
  }

  onUnsolicitedBytes(): void {
    this.#noReuseUntilMs = this.clock.nowMs() + NO_REUSE_MS;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}
