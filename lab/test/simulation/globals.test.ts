import { expect, test } from 'vitest';
import { Network } from '../../simulation/engine/network.ts';
import { Schedule } from '../../simulation/engine/schedule.ts';
import { createGlobals } from '../../simulation/platform/globals.ts';
import { Machine } from '../../simulation/platform/machine.ts';
import { SimulatedThread } from '../../simulation/platform/thread.ts';

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

function createMachine() {
  const schedule = new Schedule(() => undefined);
  const network = new Network(1, schedule, { profileOf: expect.unreachable, admits: () => 'open' });
  return { schedule, machine: new Machine('10.0.0.1', 0, { seed: 1, schedule, network }) };
}

function createThread(machine: Machine): SimulatedThread {
  const program = { run: () => Promise.resolve({}) };
  return new SimulatedThread('thread', { machine, program }, { onCrash: () => undefined });
}

function globalsOf(thread: SimulatedThread) {
  return createGlobals(() => thread).all;
}
