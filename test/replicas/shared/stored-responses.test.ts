import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  allocateStoredResponses,
  isCalledAs,
  isMadeBy,
  MAX_STORED_RESPONSES,
  StoredResponses,
} from '../../../src/replicas/shared/stored-responses.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

function open() {
  const clock = { nowMs: 0 };
  const buffer = allocateStoredResponses();
  const table = () => {
    const responses = new StoredResponses(buffer, () => clock.nowMs);
    return Object.assign(responses, { seedOf: (id: string) => responses.find(id)?.seed ?? null });
  };
  return { clock, buffer, table };
}

test('what one thread notes every thread knows', () => {
  const { table } = open();
  const [one, other] = [table(), table()];
  expect(other.seedOf('resp_1')).toBeNull();
  one.note('resp_1', -7, 'm');
  one.note('resp_2', 0, 'm');
  expect(other.seedOf('resp_1')).toBe(-7);
  expect(other.seedOf('resp_2')).toBe(0);
  other.note('resp_1', 5, 'm');
  expect(one.seedOf('resp_1')).toBe(5);
  expect(one.seedOf('')).toBeNull();
});

test('it is known which model made a response: the one that was noted last', () => {
  const { table } = open();
  const responses = table();
  responses.note('resp_1', 7, 'one');
  responses.note('resp_2', 7, 'other');
  const madeBy = (id: string) =>
    ['one', 'other', 'On', 'onee', ''].filter((model) => {
      const response = responses.find(id);
      return response !== null && isMadeBy(response, model);
    });
  expect([madeBy('resp_1'), madeBy('resp_2'), madeBy('resp_3')]).toEqual([['one'], ['other'], []]);
  responses.note('resp_1', 7, 'other');
  expect(madeBy('resp_1')).toEqual(['other']);
});

test('it is known what the client called the model: the name of the model, if it was called nothing else', () => {
  const { table } = open();
  const [one, other] = [table(), table()];
  one.note('resp_1', 7, 'model', 'alias');
  one.note('resp_2', 7, 'model');
  const calledAs = (id: string) =>
    ['model', 'alias', 'aliases', ''].filter((name) => {
      const response = other.find(id);
      return response !== null && isCalledAs(response, name);
    });
  expect([calledAs('resp_1'), calledAs('resp_2'), calledAs('resp_3')]).toEqual([['alias'], ['model'], []]);
});

test('it says of each response what was noted last, or nothing', () => {
  const id = fc.integer({ min: 0, max: 30 }).map((number) => `resp_${number}`);
  fc.assert(
    fc.property(fc.array(fc.tuple(id, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))), (notes) => {
      const { table } = open();
      const responses = table();
      const model = new Map<string, number>();
      for (const [name, seed] of notes) {
        responses.note(name, seed, 'm');
        model.set(name, seed);
      }
      for (const [name, seed] of model) expect(responses.seedOf(name)).toBe(seed);
    }),
    { numRuns: 30 },
  );
});

test('a response is forgotten a day after it was last asked for', () => {
  const { clock, table } = open();
  const responses = table();
  responses.note('resp_1', 1, 'm');
  clock.nowMs = DAY_MS;
  expect(responses.seedOf('resp_1')).toBe(1);
  clock.nowMs = 2 * DAY_MS;
  expect(responses.seedOf('resp_1')).toBe(1);
  clock.nowMs = 3 * DAY_MS + 2000;
  expect(responses.seedOf('resp_1')).toBeNull();
});

test('new responses replace those that were used longest ago', () => {
  const { clock, table } = open();
  const responses = table();
  responses.note('asked', 1, 'm');
  responses.note('idle', 1, 'm');
  for (let i = 0; i < 4 * MAX_STORED_RESPONSES; i++) {
    clock.nowMs += 10;
    responses.note(`resp_${i}`, 2, 'm');
    if (i % 1000 === 0) responses.seedOf('asked');
  }
  expect(responses.seedOf('idle')).toBeNull();
  expect(responses.seedOf('asked')).toBe(1);
  const known = Array.from({ length: 4 * MAX_STORED_RESPONSES }, (_, i) => responses.seedOf(`resp_${i}`));
  const count = known.filter((seed) => seed !== null).length;
  expect(count).toBeLessThan(MAX_STORED_RESPONSES);
  expect(count).toBeGreaterThan(MAX_STORED_RESPONSES * 0.9);
});

test('another thread gets the news once, in order, even if it was not waiting', async () => {
  const { table } = open();
  const [worker, main] = [table(), table()];
  worker.note('resp_1', 1, 'm');
  await main.untilNews();
  const [first] = main.takeNews();
  expect(first?.seed).toBe(1);
  expect(main.takeNews()).toEqual([]);
  const waiting = main.untilNews();
  worker.note('resp_2', 2, 'm');
  worker.note('resp_3', 3, 'm');
  await waiting;
  expect(main.takeNews().map(({ seed }) => seed)).toEqual([2, 3]);
  // What comes from another gateway is no news.
  if (first === undefined) throw new Error('no news');
  worker.learn({ ...first, seed: 9 });
  expect(main.seedOf('resp_1')).toBe(9);
  expect(main.takeNews()).toEqual([]);
});

test('of more news than it holds, the latest are left', () => {
  const { table } = open();
  const [worker, main] = [table(), table()];
  for (let i = 1; i <= 5000; i++) worker.note(`resp_${i}`, i, 'm');
  const seeds = main.takeNews().map(({ seed }) => seed);
  expect(seeds).toHaveLength(4096);
  expect(seeds.at(-1)).toBe(5000);
});

test('threads that write the same rows at the same time never mix responses up', async () => {
  const { buffer, table } = open();
  const module = new URL('../../../src/replicas/shared/stored-responses.ts', import.meta.url).href;
  const script = `
    const { workerData, parentPort } = require('node:worker_threads');
    import(${JSON.stringify(module)}).then(({ StoredResponses }) => {
      const responses = new StoredResponses(workerData, () => 0);
      for (let round = 0; round < 200; round++)
        for (let i = 0; i < 50; i++) responses.note('resp_' + i, i * 1000 + (round % 1000), 'm' + i, 'a' + i);
      parentPort.postMessage('done');
    });`;
  const done = Array.from({ length: 2 }, () => {
    const worker = new Worker(script, { eval: true, workerData: buffer });
    return new Promise<void>((resolve, reject) => {
      worker.once('message', () => void worker.terminate().then(() => resolve()));
      worker.once('error', reject);
    });
  });
  const responses = table();
  let isOver = false;
  void Promise.all(done).then(() => {
    isOver = true;
  });
  while (!isOver) {
    for (let i = 0; i < 50; i++) {
      const response = responses.find(`resp_${i}`);
      if (response === null) continue;
      expect(Math.floor(response.seed / 1000)).toBe(i);
      expect(isMadeBy(response, `m${i}`)).toBe(true);
      expect(isCalledAs(response, `a${i}`)).toBe(true);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(done);
  for (let i = 0; i < 50; i++) expect(responses.seedOf(`resp_${i}`)).not.toBeNull();
});
