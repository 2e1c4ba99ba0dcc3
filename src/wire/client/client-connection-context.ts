import type { DeadlineClock } from '#wire';
import type { HttpExchange } from './http-exchange.ts';

/** Time-outs and limits for every connection of a listener. */
export interface ClientConnectionSettings {
  readonly maxHeadBytes: number;
  /** From the first byte of a head to its last. */
  readonly headTimeoutMs: number;
  /** How long a connection without a request is kept open. */
  readonly keepAliveMs: number;
  /** How long a client may accept none of the bytes sent to it. */
  readonly sendTimeoutMs: number;
  /** How many bytes of a request body are read and discarded after the response. */
  readonly maxDiscardedBytes: number;
}

/** `closing`: each response that begins is the last of its connection. `ending`: no connection is kept. */
export type ListenerPhase = 'serving' | 'closing' | 'ending';

/** A connection as its listener sees it. */
export interface AcceptedConnection {
  /** Whether a part of a head has come. */
  readonly isReadingHead: boolean;
  /** Closes the connection if it has no request. Otherwise the connection closes after its response. */
  closeIfIdle(): void;
  destroy(): void;
}

/** What all connections of a listener share. */
export interface ClientConnectionContext {
  readonly settings: ClientConnectionSettings;
  readonly phase: ListenerPhase;
  readonly clock: DeadlineClock;
  handle(exchange: HttpExchange): void;
  /** Reports a bug in the gateway that ended a connection. */
  reportDefect(error: unknown): void;
  /** Called exactly once, when the connection is closed. */
  onClosed(connection: AcceptedConnection): void;
}
