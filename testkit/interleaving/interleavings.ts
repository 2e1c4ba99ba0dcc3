import { Worker } from 'node:worker_threads';
import { IS_NIGHT } from '../runs.ts';
import { CELL, CONTROL_BYTES, GO, RESULT_COUNT, STATE, type ThreadData } from './control.ts';

/**
 * What some threads do with memory that they share. Each thread runs its function in a real thread of its own; it may
 * use nothing but the memory, and returns a few 32-bit numbers.
 */
export interface Program {
  readonly name: string;
  readonly memoryBytes: number;
  /** Called before each run: makes the memory as it is at first. Default: fills it with zeros. */
  readonly prepare?: (memory: SharedArrayBuffer) => void;
  readonly threads: readonly ((memory: SharedArrayBuffer) => readonly number[])[];
}

/** How one run went. */
export interface Run {
  readonly memory: SharedArrayBuffer;
  /** What the threads returned; nothing for one that was killed. */
  readonly results: readonly (readonly number[])[];
  /** The thread that was killed; null: none. */
  readonly killed: number | null;
  /** Which thread made each step: tells how to repeat a run that went wrong. */
  readonly schedule: string;
}

/** How runs are chosen. */
export interface Choice {
  /** Also runs in which this thread dies, at each of its steps. */
  readonly kills?: number;
  /**
   * How often a thread may have to make way for another one before its end: 3 at night, 2 on each change. The orders
   * without a bound are far too many for more than ten steps; defects show with one or two (Musuvathi and Qadeer, PLDI 2007).
   */
  readonly preemptions?: number;
}

const PREEMPTIONS = IS_NIGHT ? 3 : 2;

/** One decision of a run: the threads that could go on, and which did. */
interface Decision {
  readonly options: readonly string[];
  chosen: number;
}

/**
 * Runs a program in every order in which its threads can take their atomic steps, with so many preemptions, and checks
 * each run. `programs`: the URL of the module that exports it in `PROGRAMS`. Returns the number of runs.
 */
export async function checkInterleavings(
  programs: string,
  program: Program,
  check: (run: Run) => void,
  { kills, preemptions = PREEMPTIONS }: Choice = {},
): Promise<number> {
  const { PROGRAMS } = (await import(programs)) as { readonly PROGRAMS: readonly Program[] };
  const number = PROGRAMS.findIndex(({ name }) => name === program.name);
  using threads = await startThreads(programs, program, number);
  const decisions: Decision[] = [];
  for (let count = 1; ; count++) {
    const run = threads.run(decisions, { kills: kills ?? null, preemptions });
    try {
      check(run);
    } catch (error) {
      throw new Error(`${program.name}, schedule ${run.schedule}: ${String(error)}`, { cause: error });
    }
    while (decisions.length > 0 && isLast(decisions.at(-1))) decisions.pop();
    const last = decisions.at(-1);
    if (last === undefined) return count;
    last.chosen += 1;
  }
}

function isLast(decision: Decision | undefined): boolean {
  return decision !== undefined && decision.chosen === decision.options.length - 1;
}

async function startThreads(programs: string, program: Program, number: number) {
  const control = new SharedArrayBuffer(CONTROL_BYTES);
  const memory = new SharedArrayBuffer(program.memoryBytes);
  const cells = new Int32Array(control);
  cells[CELL.program] = number;
  const count = program.threads.length;
  const workers = program.threads.map((_, index) => {
    const workerData: ThreadData = { control, memory, programs, index };
    return new Worker(new URL('./thread.ts', import.meta.url), { workerData });
  });
  const failed = new Promise<never>((_, reject) => {
    for (const worker of workers) worker.once('error', reject);
  });
  failed.catch(() => undefined);
  const areReady = async () => {
    for (let index = 0; index < count; index++) {
      const waiting = Atomics.waitAsync(cells, CELL.states + index, STATE.running);
      if (waiting.async) await waiting.value;
    }
  };
  await Promise.race([areReady(), failed]);

  /** Lets a thread go on until its next step or its end. */
  function lead(index: number, go: number): void {
    Atomics.store(cells, CELL.states + index, STATE.running);
    Atomics.store(cells, CELL.goes + index, go);
    Atomics.notify(cells, CELL.goes + index);
    for (let tries = 0; Atomics.load(cells, CELL.states + index) === STATE.running; tries++) {
      if (tries > 100) throw new Error(`thread ${index} of ${program.name} does not come to its next step`);
      Atomics.wait(cells, CELL.states + index, STATE.running, 100);
    }
  }

  const isAtStep = (index: number) => Atomics.load(cells, CELL.states + index) === STATE.atStep;

  return {
    /** One run: repeats the decisions that are given, then takes the first option each time, and notes it. */
    run(decisions: Decision[], { kills, preemptions }: { kills: number | null; preemptions: number }): Run {
      if (program.prepare === undefined) new Uint8Array(memory).fill(0);
      else program.prepare(memory);
      let killed: number | null = null;
      let schedule = '';
      let preemptionsLeft = preemptions;
      let running: number | null = null;
      for (let index = 0; index < count; index++) lead(index, GO.step);
      for (let at = 0; ; at++) {
        const waiting = workers.flatMap((_, index) => (isAtStep(index) ? [index] : []));
        if (waiting.length === 0) break;
        // The one that runs comes first: to go on is no preemption.
        const others = waiting.filter((index) => index !== running);
        const goesOn: readonly number[] = running !== null && isAtStep(running) ? [running] : [];
        const next = goesOn.length > 0 && preemptionsLeft === 0 ? goesOn : [...goesOn, ...others];
        const mayKill: boolean = kills !== null && killed === null && isAtStep(kills);
        const options: readonly string[] = [...next.map(String), ...(mayKill ? [`x${kills}`] : [])];
        const decision: Decision = decisions[at] ?? { options, chosen: 0 };
        if (decisions[at] === undefined) decisions.push(decision);
        const chosen: string = decision.options[decision.chosen] ?? '';
        schedule += chosen;
        const isKill = chosen.startsWith('x');
        const index: number = Number(chosen.slice(isKill ? 1 : 0));
        if (isKill) killed = index;
        else {
          if (goesOn.length > 0 && index !== running) preemptionsLeft -= 1;
          running = index;
        }
        lead(index, isKill ? GO.kill : GO.step);
      }
      const results = workers.map((_, index) => {
        const from = CELL.results + index * RESULT_COUNT;
        return [...cells.subarray(from, from + (cells[CELL.resultCounts + index] ?? 0))];
      });
      return { memory, results, killed, schedule };
    },
    [Symbol.dispose]() {
      for (const worker of workers) void worker.terminate();
    },
  };
}
