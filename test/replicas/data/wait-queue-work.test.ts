import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import type { WaitTable } from '#replicas/shared';
import { EventLog } from '#testkit/event-log.ts';
import { createPools, QUEUE_CAPACITY, toReplicaConfig } from '#testkit/pool.ts';
import { watchTimers } from '#testkit/timers.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { PickContext } from '../../../src/replicas/data/open-candidates.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';
import type { Rotation } from '../../../src/replicas/data/rotation.ts';
import { WaitQueue } from '../../../src/replicas/data/wait-queue.ts';

const LIMITS = { timeoutMs: 60_000, capacity: QUEUE_CAPACITY };
const ANY = { tried: new Set<Replica>(), prefixKey: null };

afterEach(() => void vi.useRealTimers());

/** A queue whose replicas have room when the test says so. It counts how often the queue looks and waits. */
function createQueue() {
  const { shared, pool } = createPools([toReplicaConfig('a')]);
  const lease = pool.acquire('m', new Set());
  if (!(lease instanceof Lease)) throw new Error(lease);
  const { replica } = lease;
  const watches = new EventLog<string>();
  const looks: string[] = [];
  const table = new Proxy(shared.waiting, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'untilWoken') watches.push('watch');
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const rotations = new Map<string, Rotation>();
  const rotationOf = (model: string) => {
    const known = rotations.get(model) ?? ({ candidates: [replica] } as unknown as Rotation);
    rotations.set(model, known);
    return known;
  };
  const room = { count: 0 };
  const acquireFrom = (_rotation: Rotation, { ticket }: PickContext) => {
    looks.push(String(ticket));
    if (room.count === 0) return 'busy';
    room.count--;
    return new Lease(replica, { reason: 'turn', candidates: 1, ruledOut: null });
  };
  const queue = new WaitQueue({ table: table as WaitTable, worker: 0, rotationOf, acquireFrom });
  const served: string[] = [];
  const wait = (model: string, name = model) => {
    const begun = queue.wait(model, ANY, LIMITS);
    if (begun === 'overloaded') throw new Error(begun);
    void begun.result.then(() => served.push(name));
    onTestFinished(() => begun.abandon());
    return begun;
  };
  return { shared, queue, rotations, rotationOf, room, looks, watches, served, wait };
}

test('a queue watches once, however many requests wait, and not when none waits', async () => {
  const { shared, room, watches, wait } = createQueue();
  const waits = [1, 2, 3].map(() => wait('m'));
  expect(watches.items).toHaveLength(1);
  room.count = 3;
  shared.waiting.wake();
  await Promise.all(waits.map(({ result }) => result));
  await new Promise(setImmediate);
  expect(watches.items).toHaveLength(1);
});

test('a queue that was empty serves the next request that waits', async () => {
  const { shared, room, watches, wait } = createQueue();
  for (const count of [1, 2]) {
    const { result } = wait('m');
    expect(watches.items).toHaveLength(count);
    room.count = 1;
    shared.waiting.wake();
    expect(await result).toBeInstanceOf(Lease);
    await new Promise(setImmediate);
  }
});

test('a wake costs one look for each model, however many of its requests wait', async () => {
  const { shared, looks, watches, wait } = createQueue();
  for (const model of ['m', 'm', 'm', 'n', 'n']) wait(model);
  looks.length = 0;
  shared.waiting.wake();
  while (watches.items.length < 2) await new Promise(setImmediate);
  expect(looks).toHaveLength(2);
});

test('requests whose models come to share their replicas are served in the order of their arrival', async () => {
  const { shared, queue, rotations, rotationOf, room, served, wait } = createQueue();
  wait('m', 'first');
  wait('n', 'second');
  wait('m', 'third');
  wait('n', 'fourth');
  for (const model of ['m', 'n']) rotations.set(model, rotationOf('all'));
  room.count = 4;
  queue.regroup();
  // All of them at once, without a further wake.
  expect(shared.waiting.count).toBe(0);
  await new Promise(setImmediate);
  expect(served).toEqual(['first', 'second', 'third', 'fourth']);
});

test('a request that ends its wait leaves no timer', async () => {
  const timeouts = watchTimers('Timeout', LIMITS.timeoutMs);
  const { wait } = createQueue();
  const { result, abandon } = wait('m');
  expect(timeouts).toMatchObject({ set: 1, left: 1 });
  abandon();
  expect(await result).toBe('gone');
  expect(timeouts).toMatchObject({ set: 1, left: 0 });
});
