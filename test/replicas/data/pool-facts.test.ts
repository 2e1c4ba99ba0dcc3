import { describe, expect, test } from 'vitest';
import { createPools, QUEUE_CAPACITY, toReplicaConfig } from '#testkit/pool.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { PoolSettings, ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';
const SETTINGS: PoolSettings = {
  policy: 'round_robin',
  queueCapacity: QUEUE_CAPACITY,
  health: {
    passive: true,
    active: false,
    failures: 1,
    coolDownMs: 3_600_000,
    frozenAfterMs: null,
    peers: null,
  },
  timeouts: { connectMs: 1_000, upstreamKeepAliveMs: 4_000, nameTtlMs: 10_000 },
};

function leaseOf(acquired: unknown): Lease {
  if (!(acquired instanceof Lease)) throw new Error(String(acquired));
  return acquired;
}

/** The replica that a request gets, which ends at once; else why it gets none. */
function pick(pool: ReplicaPool, tried: ReadonlySet<Replica> = NONE, model = 'm'): string {
  const acquired = pool.acquire(model, tried);
  if (!(acquired instanceof Lease)) return acquired;
  acquired[Symbol.dispose]();
  return acquired.replica.name;
}

/** The replicas of a pool by name. */
function replicasOf(pool: ReplicaPool, count: number): ReadonlyMap<string, Replica> {
  const found = new Map<string, Replica>();
  while (found.size < count) {
    const lease = leaseOf(pool.acquireAny(NONE));
    lease[Symbol.dispose]();
    found.set(lease.replica.name, lease.replica);
  }
  return found;
}

const get = (replicas: ReadonlyMap<string, Replica>, name: string): Replica => {
  const found = replicas.get(name);
  if (found === undefined) throw new Error(`no ${name}`);
  return found;
};

describe('what a pool says of its models', () => {
  test('follows the replicas', () => {
    const { pool, registry, publish } = createPools([
      toReplicaConfig('a', ['m']),
      toReplicaConfig('b', ['m']),
    ]);
    expect([pool.models, pool.onlyModel]).toEqual([['m'], 'm']);
    expect([pool.servesModel('m'), pool.servesModel('n')]).toEqual([true, false]);
    registry.configure([toReplicaConfig('a', ['m', 'n']), toReplicaConfig('c', ['*'])], AT);
    publish();
    expect([pool.models, pool.onlyModel]).toEqual([['m', 'n'], null]);
    expect([pool.servesModel('n'), pool.servesModel('x')]).toEqual([true, true]);
  });

  test('is whether one of its replicas may fold case', () => {
    const { pool } = createPools([
      toReplicaConfig('a', ['m'], { engine: 'vllm' }),
      toReplicaConfig('b', ['m', 'n'], { engine: 'vllm' }),
      toReplicaConfig('c', ['n'], { engine: 'ollama' }),
    ]);
    expect([pool.mayFoldCase('m'), pool.mayFoldCase('n'), pool.mayFoldCase('x')]).toEqual([
      false,
      true,
      false,
    ]);
  });

  test('is that a model is not known yet while a replica has not said what it serves', () => {
    const { pool, registry, publish } = createPools([toReplicaConfig('u', 'auto')]);
    const [unknown] = replicasOf(pool, 1).values();
    expect(pick(pool)).toBe('u');
    expect(pick(pool, new Set([unknown as Replica]))).not.toBe('u');
    registry.find('u')?.learn({ models: ['other'], engine: 'vllm' });
    publish();
    expect(pick(pool)).toBe('model_not_found');
  });
});

describe('one replica', () => {
  const limited = () =>
    createPools([
      toReplicaConfig('a', ['m'], { maxInflight: 1 }),
      toReplicaConfig('b', ['m', 'n'], { maxInflight: 1 }),
    ]);

  test('is leased where it serves the model, was not tried and is not drained, whosever turn it is', () => {
    const { pool, setDrained } = limited();
    const b = get(replicasOf(pool, 2), 'b');
    const ask = (model: string | null, tried = NONE) => {
      const acquired = pool.acquireOne(b, model, tried);
      if (!(acquired instanceof Lease)) return acquired;
      acquired[Symbol.dispose]();
      return acquired.replica.name;
    };
    expect([ask('m'), ask('m'), ask('n'), ask(null)]).toEqual(['b', 'b', 'b', 'b']);
    expect([ask('x'), ask('m', new Set([b]))]).toEqual([null, null]);
    const lease = leaseOf(pool.acquireOne(b, 'm', NONE));
    expect([b.inflight, ask('m'), ask(null)]).toEqual([1, 'busy', 'b']);
    lease[Symbol.dispose]();
    expect(pick(pool)).toBe('a');
    setDrained('b', true);
    expect(ask('m')).toBeNull();
  });

  test('is waited for, whatever becomes free besides', async () => {
    const { pool } = limited();
    const replicas = replicasOf(pool, 2);
    const [ofA, ofB] = ['a', 'b'].map((name) => leaseOf(pool.acquireOne(get(replicas, name), 'm', NONE)));
    const wait = pool.waitForOne(get(replicas, 'b'), 'm', 60_000);
    if (wait === 'overloaded') throw new Error(wait);
    ofA?.[Symbol.dispose]();
    expect(pick(pool)).toBe('a');
    ofB?.[Symbol.dispose]();
    expect(leaseOf(await wait.result).replica.name).toBe('b');
    expect(pool.waitForOne(get(replicas, 'b'), 'm', 0)).toBe('overloaded');
  });

  test('is waited for also when another comes', async () => {
    const configs = ['a', 'b', 'c'].map((name) => toReplicaConfig(name, ['m'], { maxInflight: 1 }));
    const { pool, registry, publish } = createPools(configs.slice(0, 2));
    const replicas = replicasOf(pool, 2);
    const [, ofB] = ['a', 'b'].map((name) => leaseOf(pool.acquireOne(get(replicas, name), 'm', NONE)));
    const wait = pool.waitForOne(get(replicas, 'b'), 'm', 60_000);
    if (wait === 'overloaded') throw new Error(wait);
    registry.configure(configs, AT);
    publish();
    expect(pick(pool)).toBe('c');
    ofB?.[Symbol.dispose]();
    expect(leaseOf(await wait.result).replica.name).toBe('b');
  });

  test('answers for the list of models although it is full', () => {
    const { pool, setDrained } = limited();
    const names = [1, 2, 3].map(() => leaseOf(pool.acquireAny(NONE)).replica.name);
    expect(names).toEqual(['a', 'b', 'a']);
    for (const name of ['a', 'b']) setDrained(name, true);
    expect(pool.acquireAny(NONE)).toBe('all_replicas_drained');
  });
});

describe('a stored response', () => {
  test('is at its replica until that is removed, and for its reader only', () => {
    const { pool, registry, publish } = createPools([toReplicaConfig('a'), toReplicaConfig('b')]);
    const b = get(replicasOf(pool, 2), 'b');
    pool.noteResponse('r1', b, { model: 'm', calledAs: 'alias', tenant: 't' });
    expect(pool.findResponse('r2', null)).toBeNull();
    expect(pool.findResponse('r1', null)?.home).toBe(b);
    expect(pool.findResponse('r1', null)?.isCalledAs('alias')).toBe(true);
    expect(pool.findResponse('r1', { tenant: 't', models: null })?.home).toBe(b);
    expect(pool.findResponse('r1', { tenant: 'u', models: null })).toBeNull();
    registry.configure([toReplicaConfig('a')], AT);
    publish();
    expect(pool.findResponse('r1', null)?.home).toBeNull();
  });
});

describe('new settings of a pool', () => {
  test('replace the connections only where their time-outs differ', () => {
    const { pool } = createPools([toReplicaConfig('a')]);
    const a = get(replicasOf(pool, 1), 'a');
    const { upstream } = a;
    pool.configure(SETTINGS);
    expect(a.upstream).toBe(upstream);
    expect(get(replicasOf(pool, 1), 'a')).toBe(a);
    pool.configure({ ...SETTINGS, timeouts: { ...SETTINGS.timeouts, connectMs: 5 } });
    expect(a.upstream).not.toBe(upstream);
  });

  test('hold for the next request: its policy, its queue and its health', () => {
    const { pool } = createPools([
      toReplicaConfig('a', ['m'], { maxInflight: 1 }),
      toReplicaConfig('b', ['m'], { maxInflight: 1 }),
    ]);
    expect(pool.choosesByPrefix).toBe(false);
    pool.configure({ ...SETTINGS, policy: 'prefix_affinity', queueCapacity: 0 });
    expect(pool.choosesByPrefix).toBe(true);
    const key = pool.matchPrefix('m', ['h1'])?.key;
    const names = [1, 2, 3].map(() => {
      const lease = leaseOf(pool.acquire('m', NONE, key));
      lease[Symbol.dispose]();
      return lease.replica.name;
    });
    expect(new Set(names).size).toBe(1);
    for (let count = 0; count < 2; count++) pool.acquire('m', NONE);
    expect(pool.acquire('m', NONE)).toBe('busy');
    expect(pool.waitFor('m', { tried: NONE, prefixKey: null }, 1_000)).toBe('overloaded');
  });
});

describe('a replica that fails', () => {
  const start = (coolDownMs = 3_600_000) => {
    const pools = createPools(['a', 'b', 'c'].map((name) => toReplicaConfig(name)));
    pools.pool.configure({ ...SETTINGS, health: { ...SETTINGS.health, coolDownMs } });
    const replicas = replicasOf(pools.pool, 3);
    return { ...pools, replicas };
  };

  test('is tried when no other can be, and as the others again when it answers', () => {
    const { pool, replicas, setDrained } = start();
    get(replicas, 'b').noteLoading();
    expect([1, 2, 3, 4].map(() => pick(pool))).toEqual(['a', 'c', 'a', 'c']);
    expect(pick(pool, new Set([get(replicas, 'a'), get(replicas, 'c')]))).toBe('b');
    setDrained('b', true);
    expect(pick(pool, new Set([get(replicas, 'a'), get(replicas, 'c')]))).toBe('no_replica_reachable');
    setDrained('b', false);
    get(replicas, 'b').noteAnswered(200, true);
    expect([1, 2, 3].map(() => pick(pool)).toSorted()).toEqual(['a', 'b', 'c']);
  });

  test('is tried by one request in each cool-down, besides its turn', () => {
    const { pool, replicas } = start(0);
    get(replicas, 'c').noteLoading();
    expect([1, 2].map(() => pick(pool))).toEqual(['c', 'c']);
    expect(pick(pool, new Set([get(replicas, 'c')]))).toBe('a');
    const later = start();
    get(later.replicas, 'c').noteLoading();
    expect([1, 2, 3].map(() => pick(later.pool))).toEqual(['a', 'b', 'a']);
  });
});
