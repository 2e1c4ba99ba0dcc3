import { vi } from 'vitest';
import { FleetLog, openFleet } from '#fleet';
import type { DrainState } from '#replicas/drain-state';
import { Drains } from '#replicas/drains';
import { allocateSharedState, SharedState } from '#replicas/shared';
import type { BackgroundCount } from '#replicas/terms';

type Collaborators = Parameters<typeof openFleet>[1];
type FleetStore = Collaborators['store'];
type StoredMembership = Parameters<Collaborators['file']['write']>[0];
type Snapshot = Parameters<FleetStore['writeFinal']>[0];
type Heartbeat = Parameters<FleetStore['write']>[0]['heartbeat'];

const NOBODY = { inflight: 0, background: { running: 0, unknown: 0 } };

/** A store in memory. Its `snapshots` and `heartbeats` may be changed. */
export function createScriptedStore() {
  const snapshots = new Map<string, Snapshot>();
  const heartbeats = new Map<string, Heartbeat>();
  const store: FleetStore = {
    address: 'redis://store:6379',
    async read(known) {
      const revisions = new Map([...snapshots].map(([id, { revision }]) => [id, revision]));
      const changed = [...snapshots.values()].filter(({ id, revision }) => known.get(id) !== revision);
      return { revisions, snapshots: changed, heartbeats: [...heartbeats.values()], foreign: [] };
    },
    async write({ heartbeat, snapshot, removedIds }) {
      heartbeats.set(heartbeat.id, heartbeat);
      if (snapshot !== null) snapshots.set(snapshot.id, snapshot);
      for (const id of removedIds) {
        snapshots.delete(id);
        heartbeats.delete(id);
      }
    },
    async writeFinal(snapshot) {
      snapshots.set(snapshot.id, snapshot);
      heartbeats.delete(snapshot.id);
    },
    close: () => undefined,
  };
  return { store, snapshots, heartbeats };
}

/** The store as a gateway reaches it that can be cut from it. */
export function toLink(store: FleetStore) {
  const link = { isCut: false };
  const pass = <T>(work: () => Promise<T>) => (link.isCut ? Promise.reject(new Error('cut')) : work());
  const linked: FleetStore = {
    address: store.address,
    read: (known) => pass(() => store.read(known)),
    write: (update) => pass(() => store.write(update)),
    writeFinal: (snapshot) => pass(() => store.writeFinal(snapshot)),
    close: () => undefined,
  };
  return { link, linked };
}

/** What survives a process. */
export interface Disk {
  membership: StoredMembership;
  drains: ReadonlyMap<string, DrainState>;
}

export const emptyDisk = (): Disk => ({
  membership: { id: null, home: null, isKnown: false, members: new Map(), removed: [] },
  drains: new Map(),
});

/** Starts a gateway with real rules on a store, while fake time passes. `names`: of the replicas that it has. */
export async function startScripted(
  name: string,
  store: FleetStore,
  { disk = emptyDisk(), names = [] }: { readonly disk?: Disk; readonly names?: readonly string[] } = {},
) {
  const lines: string[] = [];
  const say = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const background = new Map<string, BackgroundCount>();
  const times = { untilMs: 0 };
  const division = { gatewayCount: 0 };
  const drains = new Drains({
    shared: new SharedState(allocateSharedState(1)),
    file: {
      read: async () => disk.drains,
      write: async (states) => {
        disk.drains = new Map(states);
      },
      close: async () => undefined,
    },
    barrier: async () => [],
    log: { debug: () => undefined },
  });
  await drains.restore();
  for (const [slot, each] of names.entries()) drains.bind(each, slot);
  const fleet = await openFleet(name, {
    version: '0.1.0',
    store,
    file: {
      read: async () => disk.membership,
      write: async (membership) => {
        disk.membership = membership;
      },
    },
    clientLimits: {
      takeChanged: () => new Map(),
      onForgotten: () => undefined,
      charge: () => undefined,
      takeInflight: () => new Map(),
      maxInflightOf: () => null,
      setShare: () => undefined,
      divideBy: (gatewayCount) => void Object.assign(division, { gatewayCount }),
    },
    drains,
    background: () => background,
    backgroundUntilMs: () => times.untilMs,
    backgroundLimitMs: () => 600_000,
    inflight: () => new Map(),
    log: new FleetLog({ info: say, warn: say, error: say }),
  });
  await pass(10_000, fleet.join());
  return {
    fleet,
    drains,
    lines,
    background,
    times,
    disk,
    /** How many gateways divide the limits of clients, as it knows. */
    division,
    /** What it says of a replica on which it has nothing of its own. */
    statusOf: (replica: string) => fleet.drainStatusOf(replica, NOBODY),
    async leave() {
      await pass(2_000, fleet.leave());
    },
  };
}

/** Lets fake time pass, and returns what a promise has become by then. */
export async function pass<T>(ms: number, promise?: Promise<T>): Promise<T | undefined> {
  promise?.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(ms);
  return await promise;
}
