import type { Heartbeat, Snapshot } from './wire-format.ts';

/** What one read found in the store. */
export interface StoreContents {
  /** The revision of every snapshot, by id. */
  readonly revisions: ReadonlyMap<string, number>;
  /** The snapshots whose revision differs from the known one. */
  readonly snapshots: readonly Snapshot[];
  readonly heartbeats: readonly Heartbeat[];
  /** Data that no gateway wrote: a key, or a key and a field, in printable ASCII. */
  readonly foreign: readonly string[];
}

/** What a gateway writes in one transaction. */
export interface StoreUpdate {
  readonly heartbeat: Heartbeat;
  /** Null if the store has the current one. */
  readonly snapshot: Snapshot | null;
  /** The ids of gateways whose snapshots are deleted. This gateway's snapshot lists them as removed. */
  readonly removedIds: readonly string[];
}

/**
 * The store that the gateways of a fleet share. Every answer of the server has a deadline. A call rejects with a
 * StoreError if the deadline passes or anything else fails. The next call then opens a new connection.
 */
export interface FleetStore {
  /** Where the server is, without user and password. */
  readonly address: string;
  /** `known`: the revisions of the snapshots that were already read. */
  read(known: ReadonlyMap<string, number>): Promise<StoreContents>;
  write(update: StoreUpdate): Promise<void>;
  /** Writes the last snapshot of a gateway that stops, and deletes its heartbeat. */
  writeFinal(snapshot: Snapshot): Promise<void>;
  close(): void;
}

/** The store cannot be used. `message` is a sentence of one line that says why. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/** A key of the fleet has the wrong type. The store cannot be used until an operator removes the key. */
export class WrongTypeError extends StoreError {
  readonly key: string;

  constructor(key: string) {
    super(`${key} in Redis has the wrong type (no gateway wrote it, remove it)`);
    this.key = key;
  }
}
