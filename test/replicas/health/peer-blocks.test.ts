import { describe, expect, test } from 'vitest';
import type { Observation } from '#verdict/blocks';
import { PeerBlocks } from '../../../src/replicas/health/peer-blocks.ts';

/** A request of a replica, known by its time. */
const request = (replica: string, e2eMs: number): Observation => ({
  replica,
  model: 'm',
  endpoint: '/v1/completions',
  stream: false,
  maxTokens: null,
  promptTokens: 1,
  cachedTokens: 0,
  completionTokens: 1,
  ttftMs: null,
  gapMs: null,
  e2eMs,
  outcome: 'ok',
  finish: 'stop',
});

/** Requests of each replica, one per millisecond of this time. */
function createBlocks(names: readonly string[], fromMs: number, toMs: number): PeerBlocks {
  const blocks = new PeerBlocks();
  for (let ms = fromMs; ms <= toMs; ms++) for (const name of names) blocks.add(request(name, ms), ms);
  return blocks;
}

const timesOf = (observations: readonly Observation[]) => observations.map(({ e2eMs }) => e2eMs);

describe('a block', () => {
  test('has the requests of the replica and its peers that ended since then', () => {
    const blocks = createBlocks(['a', 'b', 'c'], 1, 10);
    const { own, peers } = blocks.blockOf('a', ['b'], 7);
    expect(timesOf(own)).toEqual([8, 9, 10]);
    expect(peers.map(({ replica, e2eMs }) => [replica, e2eMs])).toEqual([
      ['b', 8],
      ['b', 9],
      ['b', 10],
    ]);
    expect(blocks.blockOf('gone', ['b'], 7).own).toEqual([]);
  });

  test('has both sides of the same time, though fewer requests of a busy peer are kept', () => {
    const blocks = new PeerBlocks();
    for (let ms = 1; ms <= 10_000; ms++) {
      blocks.add(request('busy', ms), ms);
      if (ms % 100 === 0) blocks.add(request('a', ms), ms);
    }
    const { own, peers } = blocks.blockOf('a', ['busy'], 0);
    const [first = 0] = timesOf(peers);
    expect(first).toBeGreaterThan(8_000);
    expect(Math.min(...timesOf(own))).toBeGreaterThanOrEqual(first);
    expect(peers.length).toBeGreaterThan(500);
  });

  test('has a sample of many requests, from all of the time', () => {
    const { own, peers } = createBlocks(['a', 'b', 'c', 'd'], 1, 500).blockOf('a', ['b', 'c', 'd'], 0);
    expect([own.length, peers.length]).toEqual([250, 750]);
    expect([own[0]?.e2eMs, own.at(-1)?.e2eMs]).toEqual([1, 499]);
  });
});

test('what ended before is forgotten', () => {
  const blocks = createBlocks(['a'], 1, 100);
  blocks.forgetBefore(60);
  expect(timesOf(blocks.blockOf('a', [], 0).own)[0]).toBe(61);
  expect([blocks.hasEnded('a', 40, 0), blocks.hasEnded('a', 41, 0)]).toEqual([true, false]);
  blocks.forgetBefore(100);
  expect(blocks.hasEnded('a', 1, 0)).toBe(false);
});
