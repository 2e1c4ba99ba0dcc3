import { expect, test } from 'vitest';
import { PrefixPopularity } from '../../../src/replicas/routing/prefix-popularity.ts';

const hashOf = (id: number) => id.toString(16).padStart(16, '0').slice(-8).padEnd(16, '0');

const keyOf = (popularity: PrefixPopularity, hashes: readonly string[], replicaCount: number) =>
  popularity.match(hashes, replicaCount)?.key ?? null;

const SHARED = [hashOf(1), hashOf(2)];

test('the key is the first block while that is rare', () => {
  const popularity = new PrefixPopularity();
  expect(keyOf(popularity, SHARED, 4)).toBe(1);
});

test('a block that every request begins with is skipped, and the key is the first block of its own', () => {
  const popularity = new PrefixPopularity();
  const keys = Array.from({ length: 100 }, (_, id) => keyOf(popularity, [...SHARED, hashOf(1000 + id)], 4));
  expect(keys.slice(50)).toEqual(Array.from({ length: 50 }, (_, id) => 1050 + id));
});

test('a request with only popular blocks, or with none, has no key', () => {
  const popularity = new PrefixPopularity();
  const keys = Array.from({ length: 100 }, () => keyOf(popularity, SHARED, 4));
  expect(keys.at(-1)).toBeNull();
  expect(keyOf(popularity, [], 4)).toBeNull();
});

test('a block is popular with more than half of the share of one replica', () => {
  const keyAfter = (replicaCount: number) => {
    const popularity = new PrefixPopularity();
    let last: number | null = null;
    // One of ten requests begins with the shared block.
    for (let id = 0; id < 2000; id++) {
      if (id % 10 === 0) last = keyOf(popularity, [hashOf(1), hashOf(5000 + id)], replicaCount);
      else keyOf(popularity, [hashOf(9000 + id)], replicaCount);
    }
    return last;
  };
  expect(keyAfter(4)).toBe(1);
  expect(keyAfter(8)).toBe(5000 + 1990);
});

test('a block that is no longer popular is a key again', () => {
  const popularity = new PrefixPopularity();
  for (let id = 0; id < 1000; id++) keyOf(popularity, [hashOf(1), hashOf(5000 + id)], 4);
  for (let id = 0; id < 5000; id++) keyOf(popularity, [hashOf(9000 + id)], 4);
  expect(keyOf(popularity, SHARED, 4)).toBe(1);
});

test('two instances that see different requests of the same traffic agree', () => {
  const [one, other] = [new PrefixPopularity(), new PrefixPopularity()];
  for (let id = 0; id < 2000; id++) {
    const popularity = id % 2 === 0 ? one : other;
    keyOf(popularity, [hashOf(1), hashOf(10 + (id % 7)), hashOf(5000 + id)], 2);
  }
  for (let tenant = 0; tenant < 7; tenant++) {
    const hashes = [hashOf(1), hashOf(10 + tenant), hashOf(99)];
    expect(keyOf(one, hashes, 2)).toBe(10 + tenant);
    expect(keyOf(other, hashes, 2)).toBe(10 + tenant);
  }
});

/** Counts so many requests that begin with nothing else. */
function fill(popularity: PrefixPopularity, count: number): void {
  for (let id = 0; id < count; id++) keyOf(popularity, [hashOf(100_000 + id)], 1);
}

/** How often in a row a block is the key of requests that begin with it. */
function countKeys(popularity: PrefixPopularity, hash: string, replicaCount = 1_000): number {
  let count = 0;
  while (keyOf(popularity, [hash], replicaCount) !== null) count++;
  return count;
}

test('a block is not popular with eight requests, and with more only beyond half of the share of a replica', () => {
  expect(countKeys(new PrefixPopularity(), hashOf(1))).toBe(8);
  const popularity = new PrefixPopularity();
  fill(popularity, 9);
  // The tenth is one of 19 requests: more than half of all.
  expect(countKeys(popularity, hashOf(1), 1)).toBe(9);
});

test('the key is the number of the first eight hex digits', () => {
  expect(keyOf(new PrefixPopularity(), ['f000000a0000'], 1)).toBe(0xf000000a);
});

test('the 1,024th request halves what was counted before', () => {
  const keyOfNinth = (fillers: number) => {
    const popularity = new PrefixPopularity();
    for (let time = 0; time < 8; time++) keyOf(popularity, [hashOf(1)], 1_000);
    fill(popularity, fillers);
    return keyOf(popularity, [hashOf(1)], 1_000);
  };
  expect([keyOfNinth(1014), keyOfNinth(1015)]).toEqual([null, 1]);
});

test.each([
  [600, null],
  [400, 1],
])('after the halving, a block of %i requests is as popular as before', (seen, key) => {
  const popularity = new PrefixPopularity();
  for (let time = 0; time < seen; time++) keyOf(popularity, [hashOf(1)], 1);
  fill(popularity, 1023 - seen);
  // More than half of 512 requests are popular.
  expect(keyOf(popularity, [hashOf(1)], 1)).toBe(key);
});

test.each([
  ['once is forgotten', 1, 8],
  ['twice counts once', 2, 7],
])('a block that was seen %s by then', (_, seen, more) => {
  const popularity = new PrefixPopularity();
  for (let time = 0; time < seen; time++) keyOf(popularity, [hashOf(1)], 1_000);
  fill(popularity, 1024 - seen);
  expect(countKeys(popularity, hashOf(1))).toBe(more);
});
