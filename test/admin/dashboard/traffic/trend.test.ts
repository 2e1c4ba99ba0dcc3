import { describe, expect, test } from 'vitest';
import { Trend } from '../../../../src/admin/dashboard/traffic/trend.ts';

const ended = (...slices: readonly (readonly [slice: number, requests: number, errors: number])[]) => {
  const trend = new Trend();
  for (const [slice, requests, errors] of slices) trend.endSlice(slice, { requests, errors });
  return trend;
};

describe('a trend', () => {
  test('has 60 numbers, oldest first, zero where no request ended', () => {
    const { requests, errors } = ended([97, 4, 1], [99, 6, 0]).figures(100);
    expect(requests).toHaveLength(60);
    expect(requests.slice(-4)).toEqual([0, 4, 0, 6]);
    expect(errors.slice(-4)).toEqual([0, 1, 0, 0]);
    expect(requests.slice(0, -4).every((count) => count === 0)).toBe(true);
  });

  test('moves with the time while there are no requests', () => {
    const trend = ended([10, 3, 3]);
    expect(trend.figures(13).requests.slice(-4)).toEqual([0, 3, 0, 0]);
    expect(trend.figures(70).requests[0]).toBe(3);
    expect(trend.figures(71).requests).not.toContain(3);
  });

  test('shows nothing old after a pause, however long it was', () => {
    for (const pause of [59, 60, 61, 500]) {
      const trend = ended([10, 3, 3], [10 + pause, 1, 0]);
      const { requests } = trend.figures(11 + pause);
      expect(requests.at(-1)).toBe(1);
      expect(requests.filter((count) => count === 3)).toHaveLength(pause < 60 ? 1 : 0);
    }
  });
});
