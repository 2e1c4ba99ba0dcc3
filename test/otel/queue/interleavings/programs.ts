import { allocateSharedQueue, SharedQueueState } from '#otel/queue/shared';
import type { Program } from '#testkit/interleaving/interleavings.ts';

/** A queue with room for one record, and two workers. */
const ONE = allocateSharedQueue(2, { capacity: 1, capacityBytes: 100 });

/** The queue in this memory. */
export const stateIn = (buffer: SharedArrayBuffer) => new SharedQueueState({ ...ONE, buffer });

/** Ends a request of a worker with a record of 10 bytes, as its sender does. Returns whether it has a place. */
function endRequest(buffer: SharedArrayBuffer, worker: number): readonly number[] {
  const state = stateIn(buffer);
  state.begin(worker);
  const isReserved = state.reserve(worker, 10);
  if (!isReserved) state.countDropped(worker);
  return [Number(isReserved)];
}

const memoryBytes = ONE.buffer.byteLength;

export const TWO_FOR_ONE_PLACE: Program = {
  name: 'two records and one place',
  memoryBytes,
  threads: [(memory) => endRequest(memory, 0), (memory) => endRequest(memory, 1)],
};

export const ARRIVAL_BESIDE_RESERVATION: Program = {
  name: 'a record that arrives while another worker wants its place',
  memoryBytes,
  prepare(memory) {
    new Int32Array(memory).fill(0);
    endRequest(memory, 0);
  },
  threads: [
    (memory) => {
      stateIn(memory).moveToQueue(0, 10);
      return [];
    },
    (memory) => endRequest(memory, 1),
  ],
};

export const PROGRAMS: readonly Program[] = [TWO_FOR_ONE_PLACE, ARRIVAL_BESIDE_RESERVATION];
