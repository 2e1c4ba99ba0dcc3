import { expect, test } from 'vitest';
import { Network } from '../../../lab/simulation/engine/network.ts';
import { Schedule } from '../../../lab/simulation/engine/schedule.ts';
import { createGlobals } from '../../../lab/simulation/platform/globals.ts';
import { Machine } from '../../../lab/simulation/platform/machine.ts';
import { SimulatedThread } from '../../../lab/simulation/platform/thread.ts';

test('the time-out of a signal takes simulated time, however long the machine takes', () => {
  const { schedule, machine } = createMachine();
  const signals = globalsOf(createThread(machine)).AbortSignal as typeof AbortSignal;

  const signal = signals.timeout(5_000);

  expect(signal).toBeInstanceOf(signals);
  expect(schedule.runNext(4_999)).toBe(false);
  expect(signal.aborted).toBe(false);
  expect(schedule.runNext(5_000)).toBe(true);
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

test('a thread that waits for a word of shared memory is woken in a step of its own, and not after its end', async () => {
  const { schedule, machine } = createMachine();
  const words = new Int32Array(new SharedArrayBuffer(8));
  // Another thread has another object for the same memory.
  const { memory } = machine.futexes.copy({ memory: { buffer: words.buffer } });
  const sameWords = new Int32Array(memory.buffer);
  const [waking, ending, waiting] = [createThread(machine), createThread(machine), createThread(machine)];
  const woken: string[] = [];
  const wait = (name: string, thread: SimulatedThread) => {
    const { async: isAsync, value } = atomicsOf(thread).waitAsync(words, 1, 0);
    expect(isAsync).toBe(true);
    void Promise.resolve(value).then(() => woken.push(name));
  };
  wait('ending', ending);
  wait('waiting', waiting);
  ending.end();
  expect(atomicsOf(waiting).waitAsync(words, 1, 7)).toEqual({ async: false, value: 'not-equal' });

  expect(atomicsOf(waking).notify(sameWords, 0)).toBe(0);
  expect(atomicsOf(waking).notify(sameWords, 1)).toBe(2);
  await Promise.resolve();
  expect(woken).toEqual([]);
  expect(schedule.runNext(1)).toBe(true);
  expect(schedule.runNext(1)).toBe(false);
  await Promise.resolve();
  expect(woken).toEqual(['waiting']);
});

function createMachine() {
  const schedule = new Schedule(() => undefined);
  const network = new Network(1, schedule, { profileOf: expect.unreachable, admits: () => 'open' });
  return { schedule, machine: new Machine('10.0.0.1', 0, { seed: 1, schedule, network }) };
}

function createThread(machine: Machine): SimulatedThread {
  const program = { run: () => Promise.resolve({}) };
  return new SimulatedThread('thread', { machine, program }, { onCrash: () => undefined });
}

function atomicsOf(thread: SimulatedThread): typeof Atomics {
  return globalsOf(thread).Atomics as typeof Atomics;
}

function globalsOf(thread: SimulatedThread) {
  return createGlobals(() => thread).all;
}
