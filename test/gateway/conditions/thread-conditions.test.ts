import { expect, test } from 'vitest';
import { createThreadProducer } from '../../../src/gateway/conditions/machine-conditions.ts';

/** Threads that are busy for a share of the time, one look each second. */
function createThreads() {
  const threads = new Map<string, { activeMs: number; idleMs: number }>();
  let nowMs = 0;
  const produce = createThreadProducer(
    () => [...threads].map(([thread, times]) => ({ thread, ...times })),
    () => nowMs,
  );
  const look = () => [...produce()].map(({ subject, figures }) => [subject, figures]);
  return {
    threads,
    look,
    pass(seconds: number, busy: Record<string, number>) {
      let found = look();
      for (let second = 0; second < seconds; second += 1) {
        nowMs += 1_000;
        for (const [thread, share] of Object.entries(busy)) {
          const { activeMs, idleMs } = threads.get(thread) ?? { activeMs: 0, idleMs: 0 };
          threads.set(thread, {
            activeMs: activeMs + 1_000 * share,
            idleMs: idleMs + 1_000 * (1 - share),
          });
        }
        found = look();
      }
      return found;
    },
  };
}

test('a thread that is busy for five seconds is told by its name, until it is less busy', () => {
  const { pass } = createThreads();
  expect(pass(1, { main: 0, 'worker 1': 1, 'worker 2': 0.5 })).toEqual([]);
  expect(pass(4, { main: 0, 'worker 1': 1, 'worker 2': 0.5 })).toEqual([]);
  expect(pass(1, { main: 0, 'worker 1': 1, 'worker 2': 0.5 })).toEqual([['worker 1', { busy: 1 }]]);
  expect(pass(1, { main: 0, 'worker 1': 0, 'worker 2': 0.5 })).toEqual([]);
});

test('a second of work is not behind', () => {
  const { pass } = createThreads();
  pass(6, { main: 0 });
  expect(pass(1, { main: 1 })).toEqual([]);
});

test('a thread that replaces another is measured from its own start', () => {
  const { pass, threads } = createThreads();
  pass(20, { 'worker 1': 1 });
  threads.set('worker 1', { activeMs: 0, idleMs: 0 });
  expect(pass(1, { 'worker 1': 1 })).toEqual([]);
});
