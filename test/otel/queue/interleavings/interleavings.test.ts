import { expect, test } from 'vitest';
import { checkInterleavings } from '#testkit/interleaving/interleavings.ts';
import { ARRIVAL_BESIDE_RESERVATION, stateIn, TWO_FOR_ONE_PLACE } from './programs.ts';

const PROGRAMS = new URL('./programs.ts', import.meta.url).href;

test('of two workers that want the last place, at most one gets it, and each record is counted once', async () => {
  await checkInterleavings(PROGRAMS, TWO_FOR_ONE_PLACE, ({ memory, results }) => {
    const state = stateIn(memory);
    const placed = results.flat().reduce((sum, value) => sum + value, 0);
    expect(placed).toBeLessThanOrEqual(1);
    expect(state.inTransit()).toBe(placed);
    expect(state.fill).toBe(placed);
    expect(state.takeUnqueuedCounts()).toEqual({ dropped: 2 - placed, unencodable: 0 });
  });
});

test('a worker that dies at any step takes no place with it, and loses its record once at most', async () => {
  await checkInterleavings(
    PROGRAMS,
    TWO_FOR_ONE_PLACE,
    ({ memory, results, killed }) => {
      const state = stateIn(memory);
      const other = results[1]?.[0] ?? 0;
      const { dropped } = state.takeUnqueuedCounts();
      const { begun, lost } = state.clearWorker(0);
      expect(state.inTransit()).toBe(other);
      expect(state.fill).toBe(other);
      // Either it was dropped, or it is lost with the worker, whose place it had.
      expect(lost + dropped).toBe(begun + (1 - other));
      if (killed === null) expect(begun).toBe(1);
    },
    { kills: 0, preemptions: 2 },
  );
});

test('a record that moves to the queue is never out of both while another worker looks', async () => {
  await checkInterleavings(PROGRAMS, ARRIVAL_BESIDE_RESERVATION, ({ memory, results }) => {
    expect(results[1]).toEqual([0]);
    expect(stateIn(memory).fill).toBe(1);
  });
});
