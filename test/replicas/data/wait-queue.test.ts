import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPools, QUEUE_CAPACITY, toReplicaConfig } from '#testkit/pool.ts';
import { runs } from '#testkit/runs.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Wait, WaitResult } from '../../../src/replicas/data/wait-queue.ts';

const LONG_MS = 60_000;
const NONE = new Set<never>();

/** Replicas with these limits; `a` and `b` serve the model `m`, `b` and `c` the model `n`. */
function createLimited(limits: Readonly<Record<'a' | 'b' | 'c', number>>, workerCount = 1) {
  const models = { a: ['m'], b: ['m', 'n'], c: ['n'] };
  const configs = (['a', 'b', 'c'] as const).map((name) =>
    toReplicaConfig(name, models[name], { maxInflight: limits[name] }),
  );
  return createPools(configs, workerCount);
}

function lease(pool: ReplicaPool, model: string): Lease {
  const acquired = pool.acquire(model, NONE);
  if (!(acquired instanceof Lease)) throw new Error(acquired);
  return acquired;
}

/** Waits for a lease, as a request does when there is none. */
function ask(pool: ReplicaPool, model: string, timeoutMs = LONG_MS): Wait {
  const acquired = pool.acquire(model, NONE);
  if (acquired !== 'busy') throw new Error(`not busy: ${String(acquired)}`);
  const wait = pool.waitFor(model, { tried: NONE, prefixKey: null }, timeoutMs);
  if (wait === 'overloaded') throw new Error(wait);
  return wait;
}

const replicaOf = (result: WaitResult) => (result instanceof Lease ? result.replica.name : result);

describe('a replica that gets room', () => {
  test('serves the request that arrived first, in any worker, and not a new one', async () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm')];
    const first = ask(other, 'm');
    const second = ask(one, 'm');

    held[0]?.[Symbol.dispose]();
    expect(one.acquire('m', NONE)).toBe('busy');
    expect(replicaOf(await first.result)).toBe('a');
    held[1]?.[Symbol.dispose]();

    expect(replicaOf(await second.result)).toBe('b');
  });

  test('serves the request that arrived first among all its models', async () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm'), lease(one, 'n')];
    const forN = ask(other, 'n');
    const forM = ask(one, 'm');

    held.find(({ replica }) => replica.name === 'b')?.[Symbol.dispose]();

    expect(replicaOf(await forN.result)).toBe('b');
    held.find(({ replica }) => replica.name === 'a')?.[Symbol.dispose]();
    expect(replicaOf(await forM.result)).toBe('a');
  });

  test('serves the next request when the one before it has left or timed out', async () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm')];
    const leaves = ask(one, 'm');
    const impatient = ask(other, 'm', 1);
    const stays = ask(one, 'm');

    leaves.abandon();
    expect(await leaves.result).toBe('gone');
    expect(await impatient.result).toBe('overloaded');
    held[0]?.[Symbol.dispose]();

    expect(replicaOf(await stays.result)).toBe('a');
  });

  test('does not stay idle when the first request has just got another replica', async () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm')];
    // The first worker is woken first, but its request arrived second.
    const gone = ask(one, 'm');
    const first = ask(other, 'm');
    const second = ask(one, 'm');
    gone.abandon();
    await gone.result;

    for (const each of held) each[Symbol.dispose]();

    expect([replicaOf(await first.result), replicaOf(await second.result)].toSorted()).toEqual(['a', 'b']);
  });

  test('does not wait for a worker that has ended: neither for its waiting requests nor for those in flight', async () => {
    const { pool, shared, registry } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
    lease(pool, 'm');
    shared.beginInflight(1, slotOf('b'), 1);
    const ticket = shared.waiting.join(1, QUEUE_CAPACITY) ?? 0;
    for (const name of ['a', 'b']) shared.waiting.setHead(1, slotOf(name), ticket);
    const waits = ask(pool, 'm');
    expect(shared.waiting.count).toBe(2);

    shared.clearWorker(1);

    expect(replicaOf(await waits.result)).toBe('b');
    expect(shared.waiting.count).toBe(0);
  });

  test('serves the first request that waits for it: any models, workers, order', async () => {
    const step = fc.record({ worker: fc.nat(2), model: fc.constantFrom('m', 'n') });
    const limits = fc.record({ a: fc.integer({ min: 1, max: 3 }), b: fc.constant(2), c: fc.constant(1) });
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat()),
        async (limit, steps, picks) => {
          const { pools, shared, registry } = createLimited(limit, 3);
          const poolOf = (worker: number) => pools[worker] as ReplicaPool;
          const held: Lease[] = [];
          for (const model of ['m', 'n']) {
            for (;;) {
              const acquired = poolOf(0).acquire(model, NONE);
              if (!(acquired instanceof Lease)) break;
              held.push(acquired);
            }
          }
          const waiting = steps.map(({ worker, model }) => ({ model, wait: ask(poolOf(worker), model) }));
          for (let round = 0; waiting.length > 0; round++) {
            const [freed] = held.splice((picks[round] ?? round) % held.length, 1) as [Lease];
            freed[Symbol.dispose]();
            const { models, name } = freed.replica;
            const index = waiting.findIndex(({ model }) => models?.includes(model));
            const [winner] = index === -1 ? [] : waiting.splice(index, 1);
            const result = await winner?.wait.result;
            if (result === undefined) continue;
            expect(replicaOf(result)).toBe(name);
            held.push(result as Lease);
            for (const { inflight, config } of registry.replicas) {
              expect(inflight).toBeLessThanOrEqual(config.maxInflight ?? 0);
            }
          }
          expect(shared.waiting.count).toBe(0);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

describe('the order of arrival', () => {
  const slotOf = ({ registry }: ReturnType<typeof createLimited>, name: string) =>
    registry.find(name)?.slot ?? -1;
  const release = (held: readonly Lease[], name: string) =>
    held.find(({ replica }) => replica.name === name)?.[Symbol.dispose]();

  test('holds for a new request after others have joined the queue of another worker', () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm')];
    const waits = [ask(one, 'm'), ask(one, 'm')];
    release(held, 'a');
    expect(other.acquire('m', NONE)).toBe('busy');
    for (const wait of waits) wait.abandon();
  });

  test('holds between models that share a replica, after the first request of one of them has left', async () => {
    const { pool } = createLimited({ a: 1, b: 1, c: 1 });
    const held = [lease(pool, 'm'), lease(pool, 'm'), lease(pool, 'n')];
    const gone = ask(pool, 'm');
    const second = ask(pool, 'n');
    const third = ask(pool, 'm');
    gone.abandon();
    release(held, 'b');
    expect(replicaOf(await second.result)).toBe('b');
    release(held, 'a');
    expect(replicaOf(await third.result)).toBe('a');
  });

  test('is that of the first request of a worker for a replica, whichever model it is for', () => {
    const limited = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one] = limited.pools as [ReplicaPool];
    for (const model of ['m', 'm', 'n']) lease(one, model);
    const first = ask(one, 'm');
    const { waiting } = limited.shared;
    const between = waiting.join(1, QUEUE_CAPACITY);
    const last = ask(one, 'n');
    expect(waiting.hasEarlierWaiter(slotOf(limited, 'b'), between)).toBe(true);
    expect(waiting.hasEarlierWaiter(slotOf(limited, 'c'), between)).toBe(false);
    first.abandon();
    expect(waiting.hasEarlierWaiter(slotOf(limited, 'b'), between)).toBe(false);
    last.abandon();
  });

  test('keeps a replica for the request that can use it, behind one that has tried it', () => {
    const { pools } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    const held = [lease(one, 'm'), lease(one, 'm')];
    const tried = new Set(held.slice(0, 1).map(({ replica }) => replica));
    const behind = one.waitFor('m', { tried, prefixKey: null }, LONG_MS);
    const fresh = ask(one, 'm');
    release(held, 'a');
    expect(other.acquire('m', NONE)).toBe('busy');
    fresh.abandon();
    if (behind === 'overloaded') throw new Error(behind);
    behind.abandon();
  });

  test('holds for replicas that come while requests wait, and forgets those that are gone', async () => {
    const limited = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = limited.pools as [ReplicaPool, ReplicaPool];
    const { registry, shared, publish } = limited;
    const held = [lease(one, 'm'), lease(one, 'm')];
    const wait = ask(one, 'm');
    registry.configure([toReplicaConfig('d', ['m'], { maxInflight: 1 })], '2026-01-01T00:00:00.000Z');
    shared.beginInflight(0, slotOf(limited, 'd'), 1);
    publish();
    // They are no candidates any more.
    for (const each of held) each[Symbol.dispose]();
    await new Promise(setImmediate);
    expect(shared.waiting.count).toBe(1);
    shared.endInflight(0, slotOf(limited, 'd'));
    expect(other.acquire('m', NONE)).toBe('busy');
    expect(replicaOf(await wait.result)).toBe('d');
  });

  test('makes no request wait for a replica that has got room before it began to', async () => {
    const { pool, shared } = createLimited({ a: 1, b: 1, c: 1 });
    const held = [lease(pool, 'm'), lease(pool, 'm'), lease(pool, 'n')];
    const forN = ask(pool, 'n');
    release(held, 'a');
    const wait = pool.waitFor('m', { tried: NONE, prefixKey: null }, LONG_MS);
    expect(shared.waiting.count).toBe(1);
    if (wait === 'overloaded') throw new Error(wait);
    expect(replicaOf(await wait.result)).toBe('a');
    forN.abandon();
  });
});

describe('the wait queue', () => {
  test('has a capacity over all workers, and has room again when a request has left', async () => {
    const { pools, shared } = createLimited({ a: 1, b: 1, c: 1 }, 2);
    const [one, other] = pools as [ReplicaPool, ReplicaPool];
    for (let count = 0; count < 2; count++) lease(one, 'm');
    const waits = Array.from({ length: QUEUE_CAPACITY }, (_, index) =>
      ask(index % 2 === 0 ? one : other, 'm'),
    );
    const context = { tried: NONE, prefixKey: null };

    expect(other.waitFor('m', context, LONG_MS)).toBe('overloaded');
    waits.pop()?.abandon();
    expect(shared.waiting.count).toBe(QUEUE_CAPACITY - 1);
    expect(other.waitFor('m', context, LONG_MS)).not.toBe('overloaded');
  });

  test('lets a request overtake that can use a replica which the first has tried', async () => {
    const { pool } = createLimited({ a: 1, b: 1, c: 1 });
    const [a, b] = [lease(pool, 'm'), lease(pool, 'm')];
    const tried = pool.waitFor('m', { tried: new Set([a.replica]), prefixKey: null }, LONG_MS);
    const fresh = ask(pool, 'm');

    a[Symbol.dispose]();
    expect(replicaOf(await fresh.result)).toBe('a');
    b[Symbol.dispose]();

    if (tried === 'overloaded') throw new Error(tried);
    expect(replicaOf(await tried.result)).toBe('b');
  });

  test('follows a new snapshot: waits end with a replica that serves the model now, or because none does', async () => {
    const { pool, registry, publish } = createLimited({ a: 1, b: 1, c: 1 });
    for (let count = 0; count < 2; count++) lease(pool, 'm');
    lease(pool, 'n');
    const forM = ask(pool, 'm');
    const forN = ask(pool, 'n');

    const configs = [toReplicaConfig('a'), toReplicaConfig('d')].map((config) => ({
      ...config,
      maxInflight: 1,
    }));
    registry.configure(configs, '2026-01-01T00:00:00.000Z');
    publish();

    expect(replicaOf(await forM.result)).toBe('d');
    expect(await forN.result).toBe('model_not_found');
  });

  test('follows a new limit', async () => {
    const { pool, registry, publish } = createLimited({ a: 1, b: 1, c: 1 });
    for (let count = 0; count < 2; count++) lease(pool, 'm');
    const wait = ask(pool, 'm');

    registry.configure(
      registry.replicas.map(({ config }) => ({ ...config, maxInflight: config.name === 'a' ? 2 : 1 })),
      '2026-01-01T00:00:00.000Z',
    );
    publish();

    expect(replicaOf(await wait.result)).toBe('a');
  });
});

test('a wait that is over while the event loop stands still takes the room that was made meanwhile', async () => {
  const { pool } = createLimited({ a: 1, b: 1, c: 1 });
  const held = [lease(pool, 'm'), lease(pool, 'm')];
  await using server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const replica = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [gateway] = (await once(server, 'connection')) as [Socket];
  gateway.once('data', () => held[0]?.[Symbol.dispose]());

  replica.write('the end of a response');
  const { result } = ask(pool, 'm', 20);
  const endMs = performance.now() + 50;
  while (performance.now() < endMs);

  const found = replicaOf(await result);
  replica.destroy();
  expect(found).toBe('a');
});
