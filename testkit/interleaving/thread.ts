import { workerData } from 'node:worker_threads';
import { CELL, GO, RESULT_COUNT, STATE, type ThreadData } from './control.ts';
import type { Program } from './interleavings.ts';

/** Ends what a thread runs, as if the thread had been terminated. */
class Killed extends Error {}

const { control, memory, programs, index } = workerData as ThreadData;
const cells = new Int32Array(control);
const NAMES = ['add', 'and', 'compareExchange', 'exchange', 'load', 'or', 'store', 'sub'] as const;
const native = Object.fromEntries(NAMES.map((name) => [name, Atomics[name]])) as unknown as Pick<
  typeof Atomics,
  (typeof NAMES)[number]
>;

for (const name of NAMES) {
  const step = native[name] as (...args: unknown[]) => unknown;
  Object.assign(Atomics, {
    [name](...args: unknown[]) {
      waitForTurn(STATE.atStep);
      return step(...args);
    },
  });
}

const { PROGRAMS } = (await import(programs)) as { readonly PROGRAMS: readonly Program[] };
for (;;) {
  if (waitForTurn(STATE.idle) === GO.end) break;
  const number = native.load(cells, CELL.program);
  try {
    const results = PROGRAMS[number]?.threads[index]?.(memory) ?? [];
    if (results.length > RESULT_COUNT) throw new RangeError('too many results');
    for (const [at, value] of results.entries()) {
      native.store(cells, CELL.results + index * RESULT_COUNT + at, value);
    }
    native.store(cells, CELL.resultCounts + index, results.length);
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    native.store(cells, CELL.resultCounts + index, 0);
  }
}

/** Says how far this thread is, and waits until it may go on. */
function waitForTurn(state: number): number {
  native.store(cells, CELL.states + index, state);
  Atomics.notify(cells, CELL.states + index);
  for (;;) {
    const go = native.exchange(cells, CELL.goes + index, GO.none);
    if (go === GO.kill) throw new Killed();
    if (go !== GO.none) return go;
    Atomics.wait(cells, CELL.goes + index, GO.none);
  }
}
