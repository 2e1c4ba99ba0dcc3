import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from 'vitest';
import { Network } from '../../simulation/engine/network.ts';
import { Schedule } from '../../simulation/engine/schedule.ts';
import { createGlobals } from '../../simulation/platform/globals.ts';
import { Machine } from '../../simulation/platform/machine.ts';
import { SimulatedThread } from '../../simulation/platform/thread.ts';

/** A thread that waits for the word 1 of a memory to change from 0, with `Atomics.waitAsync`. */
interface WaitingThread {
  /** Resolves when it has been woken. */
  readonly woken: Promise<unknown>;
  end(): Promise<unknown>;
}

/** Threads, and the `Atomics.notify` of another one. */
interface Platform {
  startWaiting(): Promise<WaitingThread>;
  notify(index: number, count?: number): number;
}

const started: Worker[] = [];
afterEach(() => Promise.all(started.splice(0).map((worker) => worker.terminate())));

describe.each([
  ['real worker threads', createRealPlatform],
  ['simulated threads', createSimulatedPlatform],
])('Atomics.waitAsync on %s', (_kind, createPlatform) => {
  test('a waiter ends with its thread and costs the others no notification', async () => {
    const { startWaiting, notify } = createPlatform();
    const ending = await startWaiting();
    const second = await startWaiting();
    const third = await startWaiting();
    await ending.end();

    expect(notify(0)).toBe(0);
    expect(notify(1, 1)).toBe(1);
    await second.woken;
    expect(notify(1)).toBe(1);
    await third.woken;
    expect(notify(1)).toBe(0);
  });

  test('all waiters are woken at once if nobody says how many, without those that have ended', async () => {
    const { startWaiting, notify } = createPlatform();
    const first = await startWaiting();
    const ending = await startWaiting();
    const last = await startWaiting();
    await ending.end();

    expect(notify(1)).toBe(2);
    await Promise.all([first.woken, last.woken]);
  });
});

test('a simulated thread is woken in a step of its own, and never after its end', async () => {
  const { schedule, startThread } = createMachine();
  const [waking, ending, waiting] = [startThread(), startThread(), startThread()];
  const woken: string[] = [];
  void ending.wait(0).value.then(() => woken.push('ending'));
  void waiting.wait(0).value.then(() => woken.push('waiting'));
  expect(waiting.wait(7)).toEqual({ async: false, value: 'not-equal' });

  expect(waking.notify(1)).toBe(2);
  ending.thread.end();
  await Promise.resolve();
  expect(woken).toEqual([]);
  expect(schedule.runNext(1)).toBe(true);
  expect(schedule.runNext(1)).toBe(false);
  await Promise.resolve();
  expect(woken).toEqual(['waiting']);
});

const WAITING_CODE = `
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.on('message', () => undefined); // stays alive
  const { value } = Atomics.waitAsync(new Int32Array(workerData), 1, 0);
  value.then(() => parentPort.postMessage('woken'));
  parentPort.postMessage('waits');
`;

function createRealPlatform(): Platform {
  const buffer = new SharedArrayBuffer(8);
  return {
    async startWaiting() {
      const worker = new Worker(WAITING_CODE, { eval: true, workerData: buffer });
      started.push(worker);
      expect(await once(worker, 'message')).toEqual(['waits']);
      const woken = new Promise<void>((resolve) => {
        worker.on('message', () => resolve());
      });
      return { woken, end: () => worker.terminate() };
    },
    notify: (index, count) => Atomics.notify(new Int32Array(buffer), index, count),
  };
}

function createSimulatedPlatform(): Platform {
  const { schedule, startThread } = createMachine();
  const waking = startThread();
  return {
    async startWaiting() {
      const { thread, wait } = startThread();
      return { woken: wait(0).value, end: async () => thread.end() };
    },
    notify(index, count) {
      const wokenCount = waking.notify(index, count);
      while (schedule.runNext(1));
      return wokenCount;
    },
  };
}

/** A simulated machine, and threads on it that have the same memory behind other objects. */
function createMachine() {
  const schedule = new Schedule(() => undefined);
  const network = new Network(1, schedule, { profileOf: expect.unreachable, admits: () => 'open' });
  const machine = new Machine('10.0.0.1', 0, { seed: 1, schedule, network });
  const buffer = new SharedArrayBuffer(8);
  const startThread = () => {
    const program = { run: () => Promise.resolve({}) };
    const thread = new SimulatedThread('thread', { machine, program }, { onCrash: () => undefined });
    const atomics = createGlobals(() => thread).all.Atomics as typeof Atomics;
    const words = new Int32Array(machine.futexes.copy({ buffer }).buffer);
    return {
      thread,
      wait: (value: number) =>
        atomics.waitAsync(words, 1, value) as { readonly async: true; readonly value: Promise<string> },
      notify: (index: number, count?: number) => atomics.notify(words, index, count),
    };
  };
  return { schedule, startThread };
}
