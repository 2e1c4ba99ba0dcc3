import { afterEach, describe, expect, test, vi } from 'vitest';
import { allocateSharedQueue, SharedQueueState } from '#otel/queue/shared';

afterEach(() => vi.restoreAllMocks());

test.each([1, 2, 3, 4, 5, 6])(
  'a record that arrives in the queue during a reservation, before its read %i, is counted',
  (atRead) => {
    const state = new SharedQueueState(allocateSharedQueue(2, { capacity: 2, capacityBytes: 1024 }));
    expect(state.reserve(0, 10)).toBe(true);
    expect(state.reserve(1, 10)).toBe(true);
    const load = Atomics.load;
    let reads = 0;
    vi.spyOn(Atomics, 'load').mockImplementation((...at: Parameters<typeof load>) => {
      reads += 1;
      // What the queue's thread does between two reads of a worker.
      if (reads === atRead) state.moveToQueue(0, 10);
      return load(...at);
    });
    expect(state.reserve(1, 10)).toBe(false);
  },
);

/** The state of a queue with one worker, of any number of records. */
const createState = (capacityBytes: number) =>
  new SharedQueueState(allocateSharedQueue(1, { capacity: 1_000_000, capacityBytes }));

describe('a bound in bytes that is larger than a word', () => {
  test('is kept to the unit: no reservation overflows it', () => {
    const state = createState(2 ** 31 - 1);
    expect(state.reserveInQueue(2 ** 31 - 2)).toBe(true);
    expect(state.reserve(0, 1)).toBe(false);
    state.release(2 ** 31 - 2);
    expect(state.reserveInQueue(2 ** 31 - 12)).toBe(true);
    expect(state.reserve(0, 100)).toBe(false);
    expect(state.reserve(0, 10)).toBe(true);
    expect(state.fill).toBe(1);
  });

  test('counts each record rounded up', () => {
    const state = createState(3 * 2 ** 30);
    expect(state.reserveInQueue(3 * 2 ** 30 - 3)).toBe(true);
    expect(state.reserve(0, 1)).toBe(true);
    expect(state.reserve(0, 1)).toBe(false);
  });
});

test('at most 4,096 records of a worker without a reservation are in transit', () => {
  const state = createState(10);
  const begin = () => state.beginUnqueued(0);
  expect(Array.from({ length: 4096 }, begin).every((mayBeSent) => mayBeSent)).toBe(true);
  for (let again = 0; again < 3; again++) expect(begin()).toBe(false);
  state.endUnqueued(0);
  expect([begin(), begin()]).toEqual([true, false]);
  state.clearWorker(0);
  expect(begin()).toBe(true);
});

test('what a worker has begun and lost is counted modulo 2^32', () => {
  const state = createState(10);
  // As after 2^32 - 1 requests.
  state.discard(0);
  expect(state.clearWorker(0)).toEqual({ begun: 2 ** 32 - 1, lost: 2 ** 32 - 1 });
  state.begin(0);
  expect(state.reserve(0, 1)).toBe(true);
  state.moveToQueue(0, 1);
  expect(state.clearWorker(0)).toEqual({ begun: 1, lost: 0 });
});
