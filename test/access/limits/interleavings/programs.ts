import type { Program } from '#testkit/interleaving/interleavings.ts';
import { allocateClientLimits, ClientLimitTable } from '../../../../src/access/limits/client-limit-table.ts';

/** Two workers, and the first client with limits. */
const EMPTY = allocateClientLimits(2);
export const ROW = 0;
/** More than half of what a budget holds. */
const MOST_NS = 40e9;

/** The limits in this memory, at a time that does not pass. */
export const limitsIn = (buffer: SharedArrayBuffer) => new ClientLimitTable({ ...EMPTY, buffer }, () => 1e12);

function createProgram(name: string, run: (limits: ClientLimitTable, worker: number) => number): Program {
  return {
    name,
    memoryBytes: EMPTY.buffer.byteLength,
    // All other rows stay as they are, and the memory is large.
    prepare(memory) {
      limitsIn(memory).noteUsedRows(ROW + 1);
      limitsIn(memory).clearRow(ROW);
    },
    threads: [0, 1].map((worker) => (memory) => [run(limitsIn(memory), worker)]),
  };
}

export const LAST_OF_BUDGET = createProgram('two requests and the last of a budget', (limits) =>
  Number(limits.tryTake('tokens', ROW, MOST_NS)),
);

export const CHARGED_TWICE = createProgram('two requests that are charged', (limits) => {
  limits.charge('tokens', ROW, 1e9);
  limits.addUsed('tokens', ROW, 5);
  return 0;
});

export const LAST_INFLIGHT = createProgram('two requests and one in flight', (limits, worker) =>
  Number(limits.beginInflight(worker, ROW, 1)),
);

export const PROGRAMS: readonly Program[] = [LAST_OF_BUDGET, CHARGED_TWICE, LAST_INFLIGHT];
