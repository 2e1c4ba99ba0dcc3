import { type PoolSettings, ReplicaPool } from '#replicas';
import { Drains } from '#replicas/drains';
import { BackgroundCounts, ReplicaRegistry } from '#replicas/registry';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { allocateStoredResponses, StoredResponses } from '#replicas/stored-responses';
import type { ReplicaConfig } from '#replicas/terms';
import { DeadlineClock } from '#wire';
import { SharedReads } from '#wire/upstream';

/** Requests that may wait in all pools of a test together. */
export const QUEUE_CAPACITY = 20;

const TIMEOUTS = { connectMs: 1_000, upstreamKeepAliveMs: 4_000, nameTtlMs: 10_000 };

/** The configuration of a replica, by default with the model `m`. Nothing listens at its URL. */
export function toReplicaConfig(
  name: string,
  models: ReplicaConfig['models'] = ['m'],
  members: Partial<ReplicaConfig> = {},
): ReplicaConfig {
  const url = `http://${name}.test:8000/base`;
  return {
    name,
    url,
    host: name,
    apiKey: null,
    gpuModel: null,
    gpuCount: null,
    gpuHourPrice: null,
    maxInflight: null,
    role: 'serve',
    models,
    engine: 'auto',
    ...members,
  };
}

/** A registry and the pools of several workers, in one thread and without a network. */
export interface TestPools {
  readonly shared: SharedState;
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly background: BackgroundCounts;
  /** The first worker's pool. */
  readonly pool: ReplicaPool;
  /** One per worker. */
  readonly pools: readonly ReplicaPool[];
  /** Drains or undrains. */
  setDrained(name: string, drained: boolean): void;
  /** Applies the state of the registry to every pool. */
  publish(): void;
}

/** `nowMs`: the clock of ramps. */
export interface PoolOptions {
  readonly policy?: PoolSettings['policy'];
  readonly nowMs?: () => number;
}

/** Creates the pools with these replicas. */
export function createPools(
  configs: readonly ReplicaConfig[],
  workerCount = 1,
  { policy = 'round_robin', nowMs }: PoolOptions = {},
): TestPools {
  const shared = new SharedState(allocateSharedState(workerCount), nowMs);
  const drains = new Drains({
    shared,
    file: { read: async () => new Map(), write: async () => undefined, close: async () => undefined },
    barrier: async () => [],
    log: { debug: () => undefined },
  });
  const background = new BackgroundCounts();
  const registry = new ReplicaRegistry({ shared, drains, background }, TIMEOUTS.connectMs);
  registry.configure(configs, '2026-01-01T00:00:00.000Z');
  const settings = {
    policy,
    queueCapacity: QUEUE_CAPACITY,
    health: {
      passive: false,
      active: false,
      failures: 3,
      coolDownMs: 10_000,
      frozenAfterMs: null,
      peers: null,
    },
    timeouts: TIMEOUTS,
  } as const;
  const collaborators = {
    shared,
    onHealth: () => undefined,
    clock: new DeadlineClock(500),
    sharedReads: new SharedReads(),
    storedResponses: new StoredResponses(allocateStoredResponses()),
    onDefect: () => undefined,
  };
  const first = new ReplicaPool(settings, { ...collaborators, worker: 0 });
  const others = Array.from(
    { length: workerCount - 1 },
    (_, index) => new ReplicaPool(settings, { ...collaborators, worker: index + 1 }),
  );
  const pools = [first, ...others];
  const publish = () => {
    const snapshot = registry.nextSnapshot();
    for (const pool of pools) pool.apply(snapshot);
    registry.noteApplied(snapshot.version);
  };
  publish();
  return {
    shared,
    registry,
    drains,
    background,
    pool: first,
    pools,
    publish,
    setDrained: (name, drained) =>
      void drains.set(name, drained, { reason: null, at: '2026-01-01T00:00:00.000Z' }),
  };
}
