import { expect, test } from 'vitest';
import { Parts, type Stage } from '../../src/gateway/parts.ts';

const STEPS = { delayMs: 0, graceMs: 0, flushMs: 0 };

/** A part that notes when it is started and stopped. */
function createNoting(parts: Parts) {
  const calls: string[] = [];
  return {
    calls,
    add(stage: Stage, name: string, fails: { readonly start?: Error; readonly stop?: Error } = {}) {
      parts.add(stage, {
        async start() {
          calls.push(`start ${name}`);
          if (fails.start !== undefined) throw fails.start;
        },
        async stop(_, lost) {
          calls.push(`stop ${name}`);
          if (fails.stop !== undefined) throw fails.stop;
          lost.cutRequests += 1;
        },
      });
    },
  };
}

test('parts start in the order of their stages, however they were added, and stop in reverse', async () => {
  const parts = new Parts();
  const { add, calls } = createNoting(parts);
  add('clients', 'listener');
  add('state', 'lock');
  add('export', 'queue');
  add('admin API', 'admin');
  add('export', 'metrics');
  await parts.start();
  expect(await parts.stop(STEPS)).toEqual({ cutRequests: 5, undeliveredRecords: 0 });
  const order = ['lock', 'admin', 'queue', 'metrics', 'listener'];
  const reverse = ['listener', 'queue', 'metrics', 'admin', 'lock'];
  expect(calls).toEqual([...order.map((name) => `start ${name}`), ...reverse.map((name) => `stop ${name}`)]);
});

test('a part that cannot start keeps those after it from starting; all are stopped', async () => {
  const parts = new Parts();
  const { add, calls } = createNoting(parts);
  const taken = new Error('port taken');
  add('state', 'lock');
  add('admin API', 'admin', { start: taken });
  add('clients', 'listener');
  await expect(parts.start()).rejects.toBe(taken);
  await parts.stop(STEPS);
  expect(calls).toEqual(['start lock', 'start admin', 'stop listener', 'stop admin', 'stop lock']);
});

test('a start that is to stop waits for no part that has not started, and starts no other', async () => {
  const parts = new Parts();
  const { add, calls } = createNoting(parts);
  const started = Promise.withResolvers<void>();
  const stopped = new AbortController();
  add('state', 'lock');
  parts.add('topology', {
    start() {
      started.resolve();
      return new Promise(() => {});
    },
  });
  add('clients', 'listener');
  const start = parts.start(stopped.signal);
  await started.promise;
  stopped.abort();
  await expect(start).rejects.toBe(stopped.signal.reason);
  await expect(parts.start(stopped.signal)).rejects.toBe(stopped.signal.reason);
  expect(calls).toEqual(['start lock']);
});

test('a part that cannot stop keeps no other from stopping: the first error comes in the end', async () => {
  const parts = new Parts();
  const { add, calls } = createNoting(parts);
  const first = new Error('first');
  add('state', 'lock', { stop: new Error('second') });
  add('workers', 'threads');
  add('clients', 'listener', { stop: first });
  await expect(parts.stop(STEPS)).rejects.toBe(first);
  expect(calls).toEqual(['stop listener', 'stop threads', 'stop lock']);
});
