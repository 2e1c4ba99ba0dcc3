import type { Socket } from 'node:net';
import type { DeadlineClock } from './deadline-clock.ts';
import type { SocketReads } from './shared-reads.ts';
import { UpstreamConnection, type UpstreamConnectionOwner } from './upstream-connection.ts';

/**
 * Opens a connection; calls back with it, or with why there is none. `reads`: what it reads, where that does not come
 * as `data` events.
 */
export type Connector = (
  callback: (error: Error | null, socket: Socket | null, reads?: SocketReads) => void,
) => void;

/** How connections are opened and how long they are kept. */
export interface UpstreamConnectionsSettings {
  readonly connect: Connector;
  /** How long a connection without a request is kept. */
  readonly keepAliveMs: number;
  /** The age at which a connection takes no further request; Infinity: none. */
  readonly maxAgeMs: number;
  /** A defect of ours ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/** A server's own hint (`Keep-Alive: timeout=5`) is shortened by the way there. */
const HINT_MARGIN_MS = 1_000;
/** How long no connection is used twice after a server sent bytes that nobody had asked for. */
const DISTRUST_MS = 60_000;

/**
 * The connections to one server: as many as there are requests at one time. The one used last is used next, so that
 * those which are too many come to their keep-alive time-out.
 */
export class UpstreamConnections implements UpstreamConnectionOwner {
  readonly clock: DeadlineClock;
  readonly #settings: UpstreamConnectionsSettings;
  readonly #all = new Set<UpstreamConnection>();
  /** Those without a request, the one used last at the end. */
  readonly #idle: UpstreamConnection[] = [];
  #isRetired = false;
  #isDestroyed = false;
  #distrustedUntilMs = 0;

  constructor(settings: UpstreamConnectionsSettings, clock: DeadlineClock) {
    this.#settings = settings;
    this.clock = clock;
  }

  /** A connection without a request, if there is one that may be used. */
  takeIdle(): UpstreamConnection | null {
    const nowMs = this.clock.recentMs;
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (!connection.isClosed && nowMs - connection.connectedMs < this.#settings.maxAgeMs) return connection;
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

  /** Takes back a connection that was not used. */
  putBack(connection: UpstreamConnection): void {
    if (!connection.isClosed) this.onFree(connection);
  }

  /** Closes each connection as soon as no request is under way on it. */
  retire(): void {
    this.#isRetired = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  /** Destroys every connection; requests under way fail. */
  destroy(): void {
    this.#isDestroyed = true;
    this.retire();
    for (const connection of [...this.#all]) connection.breakOff();
  }

  onFree(connection: UpstreamConnection): void {
    if (this.#isRetired || this.clock.recentMs < this.#distrustedUntilMs) {
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

  reportDefect(error: unknown): void {
    this.#settings.onDefect(error);
  }

  onUnasked(): void {
    this.#distrustedUntilMs = this.clock.nowMs() + DISTRUST_MS;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}
