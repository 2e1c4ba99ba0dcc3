import { HEARTBEAT_TTL_MS } from '../../../src/fleet/timing.ts';
import type { Heartbeat, Snapshot } from '../../../src/fleet/wire-format.ts';

interface ModelContents {
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  readonly heartbeats: ReadonlyMap<string, { readonly heartbeat: Heartbeat; readonly expiresAtMs: number }>;
}

const EMPTY: ModelContents = { snapshots: new Map(), heartbeats: new Map() };

/** How many writes a failover can lose. */
const HISTORY = 40;

/** The store of the model. It expires heartbeats, and can lose all data or only the latest writes. */
export class ModelStore {
  #now: ModelContents = EMPTY;
  #history: readonly ModelContents[] = [];
  /** By replica name: the latest version that the store ever contained. */
  readonly latestVersions = new Map<string, string>();

  /** Writes a heartbeat and, if it changed, a snapshot. Deletes the snapshots of removed gateways. */
  write(
    {
      heartbeat,
      snapshot,
      removedIds,
    }: { heartbeat: Heartbeat; snapshot: Snapshot | null; removedIds: readonly string[] },
    nowMs: number,
  ): void {
    const snapshots = new Map([...this.#now.snapshots].filter(([id]) => !removedIds.includes(id)));
    if (snapshot !== null) snapshots.set(snapshot.id, snapshot);
    for (const [replica, { version }] of snapshot?.drains ?? []) {
      if (version > (this.latestVersions.get(replica) ?? '')) this.latestVersions.set(replica, version);
    }
    const heartbeats = new Map([
      ...this.#now.heartbeats,
      [heartbeat.id, { heartbeat, expiresAtMs: nowMs + HEARTBEAT_TTL_MS }],
    ]);
    this.#replaceBy({ snapshots, heartbeats });
  }

  /** Writes the last snapshot of a gateway that stops. */
  writeFinal(snapshot: Snapshot): void {
    this.#replaceBy({ ...this.#now, snapshots: new Map([...this.#now.snapshots, [snapshot.id, snapshot]]) });
  }

  readSnapshots(): readonly Snapshot[] {
    return [...this.#now.snapshots.values()];
  }

  readHeartbeats(nowMs: number): readonly Heartbeat[] {
    const living = [...this.#now.heartbeats.values()].filter(({ expiresAtMs }) => nowMs < expiresAtMs);
    return living.map(({ heartbeat }) => heartbeat);
  }

  /** Goes back to an empty or an earlier state. Returns a function that undoes it. */
  lose(howMuch: 'everything' | number): () => void {
    const before = this.#now;
    this.#replaceBy(howMuch === 'everything' ? EMPTY : (this.#history.at(-1 - howMuch) ?? before));
    return () => this.#replaceBy(before);
  }

  #replaceBy(contents: ModelContents): void {
    this.#history = [...this.#history, this.#now].slice(-HISTORY);
    this.#now = contents;
  }
}
