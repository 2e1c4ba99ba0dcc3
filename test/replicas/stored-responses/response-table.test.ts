import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '#testkit/runs.ts';
import {
  allocateStoredResponses,
  MAX_STORED_RESPONSES,
  StoredResponses,
} from '../../../src/replicas/stored-responses/response-table.ts';
import { isCalledAs, isMadeBy, mayRead } from '../../../src/replicas/stored-responses/stored-response.ts';

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
  one.note('resp_1', { seed: -7, model: 'm' });
  one.note('resp_2', { seed: 0, model: 'm' });
  expect(other.seedOf('resp_1')).toBe(-7);
  expect(other.seedOf('resp_2')).toBe(0);
  other.note('resp_1', { seed: 5, model: 'm' });
  expect(one.seedOf('resp_1')).toBe(5);
  expect(one.seedOf('')).toBeNull();
});

test('it is known which model made a response: the one that was noted last', () => {
  const { table } = open();
  const responses = table();
  responses.note('resp_1', { seed: 7, model: 'one' });
  responses.note('resp_2', { seed: 7, model: 'other' });
  const madeBy = (id: string) =>
    ['one', 'other', 'On', 'onee', ''].filter((model) => {
      const response = responses.find(id);
      return response !== null && isMadeBy(response, model);
    });
  expect([madeBy('resp_1'), madeBy('resp_2'), madeBy('resp_3')]).toEqual([['one'], ['other'], []]);
  responses.note('resp_1', { seed: 7, model: 'other' });
  expect(madeBy('resp_1')).toEqual(['other']);
});

test('it is known what the client called the model: the name of the model, if it was called nothing else', () => {
  const { table } = open();
  const [one, other] = [table(), table()];
  one.note('resp_1', { seed: 7, model: 'model', calledAs: 'alias' });
  one.note('resp_2', { seed: 7, model: 'model' });
  const calledAs = (id: string) =>
    ['model', 'alias', 'aliases', ''].filter((name) => {
      const response = other.find(id);
      return response !== null && isCalledAs(response, name);
    });
  expect([calledAs('resp_1'), calledAs('resp_2'), calledAs('resp_3')]).toEqual([['alias'], ['model'], []]);
});

test('it is known whose a response is: of its tenant, with one of the models', () => {
  const { table } = open();
  const [one, other] = [table(), table()];
  one.note('resp_1', { seed: 7, model: 'm', tenant: 'search' });
  one.note('resp_2', { seed: 7, model: 'm', tenant: 'batch' });
  one.note('resp_3', { seed: 7, model: 'm' });
  const readable = (tenant: string, models: readonly string[] | null) =>
    ['resp_1', 'resp_2', 'resp_3', 'resp_4'].filter((id) => {
      const response = other.find(id);
      return response !== null && mayRead(response, id, { tenant, models });
    });
  expect(readable('search', null)).toEqual(['resp_1']);
  expect(readable('batch', ['other', 'm'])).toEqual(['resp_2']);
  expect(readable('batch', ['other'])).toEqual([]);
  expect(readable('batch', [])).toEqual([]);
  expect([readable('', null), readable('Search', null), readable('search\n', null)]).toEqual([[], [], []]);
});

test('what is kept of an owner differs from response to response, so that it names nobody', () => {
  const { table } = open();
  const responses = table();
  const ownerOf = (id: string) => {
    responses.note(id, { seed: 7, model: 'm', tenant: 'search' });
    return responses.find(id)?.owner;
  };
  expect(ownerOf('resp_1')).not.toEqual(ownerOf('resp_2'));
  expect(ownerOf('resp_1')).not.toEqual([0, 0]);
});

test('a response stays its owner\u2019s, whoever claims its id, until it is forgotten', () => {
  const { clock, table } = open();
  const [one, other] = [table(), table()];
  const isOf = (tenant: string) => {
    const response = one.find('resp_1');
    return response !== null && mayRead(response, 'resp_1', { tenant, models: null });
  };
  one.note('resp_1', { seed: 7, model: 'm', tenant: 'search' });
  const [told] = one.takeNews();
  for (const tenant of ['batch', null]) other.note('resp_1', { seed: 8, model: 'n', tenant });
  expect([isOf('search'), isOf('batch'), one.seedOf('resp_1')]).toEqual([true, false, 7]);
  expect(one.takeNews()).toEqual([]);
  const claim = open().table();
  claim.note('resp_1', { seed: 8, model: 'n', tenant: 'batch' });
  for (const response of claim.takeNews()) expect(one.learn(response)).toBe(false);
  // What was told comes back on the channel.
  if (told === undefined) throw new Error('no news');
  expect(one.learn(told)).toBe(true);
  expect(isOf('search')).toBe(true);
  clock.nowMs = DAY_MS + 2000;
  other.note('resp_1', { seed: 8, model: 'n', tenant: 'batch' });
  expect([isOf('search'), isOf('batch')]).toEqual([false, true]);
});

test('it says of each response what was noted last, or nothing', () => {
  const id = fc.integer({ min: 0, max: 30 }).map((number) => `resp_${number}`);
  fc.assert(
    fc.property(fc.array(fc.tuple(id, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))), (notes) => {
      const { table } = open();
      const responses = table();
      const model = new Map<string, number>();
      for (const [name, seed] of notes) {
        responses.note(name, { seed: seed, model: 'm' });
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
  responses.note('resp_1', { seed: 1, model: 'm' });
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
  responses.note('asked', { seed: 1, model: 'm' });
  responses.note('idle', { seed: 1, model: 'm' });
  // Twice as many as it holds replace almost all that were there before.
  const noteCount = runs(8 * MAX_STORED_RESPONSES);
  for (let i = 0; i < noteCount; i++) {
    clock.nowMs += 10;
    responses.note(`resp_${i}`, { seed: 2, model: 'm' });
    if (i % 1000 === 0) responses.seedOf('asked');
  }
  expect(responses.seedOf('idle')).toBeNull();
  expect(responses.seedOf('asked')).toBe(1);
  const known = Array.from({ length: noteCount }, (_, i) => responses.seedOf(`resp_${i}`));
  const count = known.filter((seed) => seed !== null).length;
  expect(count).toBeLessThan(MAX_STORED_RESPONSES);
  expect(count).toBeGreaterThan(MAX_STORED_RESPONSES * 0.9);
});

test('a row that a thread was writing when it was killed keeps no other from being noted', () => {
  const { clock, buffer, table } = open();
  const responses = table();
  // The versions come first in the memory: an odd one says that the row is being written.
  const versions = new Int32Array(buffer, 0, MAX_STORED_RESPONSES);
  for (let row = 0; row < MAX_STORED_RESPONSES; row += 8) versions[row] = 1;
  clock.nowMs = 1000;
  let lostCount = 0;
  for (let i = 0; i < runs(2 * MAX_STORED_RESPONSES); i++) {
    responses.note(`resp_${i}`, { seed: i, model: 'm' });
    if (responses.seedOf(`resp_${i}`) !== i) lostCount++;
  }
  expect(lostCount).toBe(0);
});

test('another thread gets the news once, in order, even if it was not waiting', async () => {
  const { table } = open();
  const [worker, main] = [table(), table()];
  worker.note('resp_1', { seed: 1, model: 'm' });
  await main.untilNews();
  const [first] = main.takeNews();
  expect(first?.seed).toBe(1);
  expect(main.takeNews()).toEqual([]);
  const waiting = main.untilNews();
  worker.note('resp_2', { seed: 2, model: 'm' });
  worker.note('resp_3', { seed: 3, model: 'm' });
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
  for (let i = 1; i <= 5000; i++) worker.note(`resp_${i}`, { seed: i, model: 'm' });
  const seeds = main.takeNews().map(({ seed }) => seed);
  expect(seeds).toHaveLength(4096);
  expect(seeds.at(-1)).toBe(5000);
});

test('threads that write the same rows at the same time never mix responses up', async () => {
  const { buffer, table } = open();
  const module = new URL('../../../src/replicas/stored-responses/response-table.ts', import.meta.url).href;
  const script = `
    const { workerData, parentPort } = require('node:worker_threads');
    import(${JSON.stringify(module)}).then(({ StoredResponses }) => {
      const responses = new StoredResponses(workerData, () => 0);
      for (let round = 0; round < 200; round++)
        for (let i = 0; i < 50; i++) responses.note('resp_' + i, { seed: i * 1000 + (round % 1000), model: 'm' + i, calledAs: 'a' + i, tenant: 't' + i });
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
      expect(mayRead(response, `resp_${i}`, { tenant: `t${i}`, models: null })).toBe(true);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(done);
  for (let i = 0; i < 50; i++) expect(responses.seedOf(`resp_${i}`)).not.toBeNull();
});
