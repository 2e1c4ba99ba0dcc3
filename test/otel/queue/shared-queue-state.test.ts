import { afterEach, expect, test, vi } from 'vitest';
import { allocateSharedQueue, SharedQueueState } from '../../../otel/queue/shared-queue-state.ts';

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
