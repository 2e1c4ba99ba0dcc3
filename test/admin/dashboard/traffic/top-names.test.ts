import { describe, expect, test } from 'vitest';
import type { CountedRequest } from '../../../../src/admin/dashboard/traffic/tally.ts';
import { OTHER_NAMES, TopNames } from '../../../../src/admin/dashboard/traffic/top-names.ts';

const REQUEST: CountedRequest = {
  outcome: 'success',
  isRequest: true,
  outputTokens: 1,
  hasGpuTime: false,
  currency: null,
  ttftBucket: -1,
  latencyBucket: 3,
};

const add = (names: TopNames, slice: number, name: string, count = 1) => {
  for (let index = 0; index < count; index++) names.add(name, slice, REQUEST);
};

const requestsOf = (names: TopNames, current: number) =>
  names.sumsUntil(current).map(([name, sum]) => [name, sum.requests]);

describe('the names of clients', () => {
  test('come with most requests first', () => {
    const names = new TopNames();
    add(names, 0, 'rare');
    add(names, 0, 'frequent', 3);
    expect(requestsOf(names, 0)).toEqual([
      ['frequent', 3],
      ['rare', 1],
    ]);
  });

  test.each(['__proto__', 'constructor', 'toString', ''])('may be %o', (name) => {
    const names = new TopNames();
    add(names, 0, name, 2);
    expect(requestsOf(names, 0)).toEqual([[name, 2]]);
  });

  test(`are counted with the others if they are ${OTHER_NAMES}`, () => {
    const names = new TopNames();
    add(names, 0, OTHER_NAMES, 2);
    for (let index = 0; index < 51; index++) add(names, 0, `n${index}`);
    const counted = requestsOf(names, 0);
    expect(counted).toHaveLength(51);
    expect(counted.at(-1)).toEqual([OTHER_NAMES, 3]);
    names.endSlice(0);
    expect(requestsOf(names, 1).filter(([name]) => name === OTHER_NAMES)).toHaveLength(1);
  });

  test('that are the busiest 50 of two hundred are shown with all of their requests', () => {
    const names = new TopNames();
    for (let slice = 0; slice < 10; slice++) {
      for (let index = 0; index < 15; index++) add(names, slice, `tenant-${slice}-${index}`);
      add(names, slice, 'busiest', slice === 6 ? 13 : 0);
      names.endSlice(slice);
    }
    const counted = requestsOf(names, 10);
    expect(counted).toHaveLength(51);
    expect(counted[0]).toEqual(['busiest', 13]);
    expect(counted.at(-1)).toEqual([OTHER_NAMES, 101]);
  });

  test('lose their row a minute after their last request', () => {
    const names = new TopNames();
    add(names, 0, 'gone');
    names.endSlice(11);
    expect(requestsOf(names, 11)).toEqual([['gone', 1]]);
    names.endSlice(12);
    expect(requestsOf(names, 13)).toEqual([]);
  });
});

describe('a client that invents names', () => {
  const flood = (names: TopNames, slice: number, count: number, between: () => void = () => {}) => {
    for (let index = 0; index < count; index++) {
      add(names, slice, `invented-${slice}-${index}`);
      if (index % 50 === 0) between();
    }
  };

  test('gets at most 50 rows, and no request is lost from the sum', () => {
    const names = new TopNames();
    for (let slice = 0; slice < 12; slice++) {
      flood(names, slice, 2_000);
      names.endSlice(slice);
    }
    const sums = names.sumsUntil(11);
    expect(sums.length).toBeLessThanOrEqual(51);
    expect(sums.reduce((sum, [, { requests }]) => sum + requests, 0)).toBe(24_000);
  });

  test('does not hide a real name for longer than one slice, even if it came first', () => {
    const names = new TopNames();
    flood(names, 0, 500);
    flood(names, 1, 2_000, () => add(names, 1, 'real'));
    expect(requestsOf(names, 1).map(([name]) => name)).not.toContain('real');
    names.endSlice(1);
    flood(names, 2, 2_000, () => add(names, 2, 'real'));
    expect(requestsOf(names, 2)[0]).toEqual(['real', 40]);
    expect(requestsOf(names, 2).reduce((sum, [, requests]) => sum + Number(requests), 0)).toBe(4_580);
  });

  test('does not take the row of a busy name', () => {
    const names = new TopNames();
    for (let index = 0; index < 50; index++) add(names, 0, `real-${index}`, 5);
    for (let slice = 0; slice < 5; slice++) {
      flood(names, slice, 2_000);
      if (slice > 0) for (let index = 0; index < 50; index++) add(names, slice, `real-${index}`, 5);
      names.endSlice(slice);
    }
    const real = requestsOf(names, 4).filter(([name]) => String(name).startsWith('real'));
    expect(real).toEqual(Array.from({ length: 50 }, (_, index) => [`real-${index}`, 25]));
  });
});
