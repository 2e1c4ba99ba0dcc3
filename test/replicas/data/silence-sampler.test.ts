import { expect, test, vi } from 'vitest';
import type { Silence, SilenceTable } from '#replicas/shared';
import { DeadlineClock } from '#wire';
import { SilenceSampler } from '../../../src/replicas/data/silence-sampler.ts';

/** A sampler of two replicas, whose thread began 1000 ms after the clock that all threads share. */
function createSampler() {
  const notes: string[] = [];
  const seen = new Map<number, Silence>([
    [3, { heardMs: 40, waitingSinceMs: 50 }],
    [4, { heardMs: null, waitingSinceMs: null }],
  ]);
  const table = {
    nowMs: () => 1_100,
    note: (worker: number, slot: number, silence: Silence) =>
      notes.push(`${worker} ${slot} ${silence.heardMs} ${silence.waitingSinceMs}`),
    noteSampled: (worker: number) => notes.push(`sampled ${worker}`),
    clearWorker: (worker: number) => notes.push(`cleared ${worker}`),
  };
  const time = { nowMs: () => 100, every: () => () => undefined, afterReads: () => undefined };
  const sampler = new SilenceSampler({
    ...{ table: table as unknown as SilenceTable, worker: 2, clock: new DeadlineClock(1, time) },
    replicas: () =>
      [...seen].map(([slot, silence]) => ({ slot, upstream: { observeSilence: () => silence } })),
  });
  return { sampler, notes };
}

test('what a thread has seen is noted in the time of all threads', () => {
  const { sampler, notes } = createSampler();
  sampler.sample();
  expect(notes).toEqual(['2 3 1040 1050', '2 4 null null', 'sampled 2']);
});

test('a sampler samples as often as it is told, and clears what it noted when it is told to stop', async () => {
  vi.useFakeTimers();
  try {
    const { sampler, notes } = createSampler();
    sampler.configure(null);
    expect(notes).toEqual([]);
    sampler.configure(400);
    await vi.advanceTimersByTimeAsync(99);
    expect(notes).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(notes.splice(0)).toHaveLength(3);
    sampler.configure(400);
    sampler.configure(800);
    await vi.advanceTimersByTimeAsync(199);
    expect(notes).toEqual([]);
    await vi.advanceTimersByTimeAsync(2);
    expect(notes.splice(0)).toHaveLength(3);
    sampler.configure(null);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(notes.splice(0)).toEqual(['cleared 2']);
    sampler.configure(800);
    sampler.stop();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(notes).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

test('a sampler keeps no process alive', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const { sampler } = createSampler();
  sampler.configure(400);
  expect(timers()).toBe(before);
  sampler.stop();
});
