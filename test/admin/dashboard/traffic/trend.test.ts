import { describe, expect, test } from 'vitest';
import { Trend } from '../../../../src/admin/dashboard/traffic/traffic-window.ts';

const ended = (...slices: readonly (readonly [slice: number, attempts: number, errors: number])[]) => {
  const trend = new Trend();
  for (const [slice, attempts, errors] of slices) trend.endSlice(slice, { attempts, errors });
  return trend;
};

describe('a trend', () => {
  test('has 60 numbers, oldest first, zero where no attempt ended', () => {
    const { attempts, errors } = ended([97, 4, 1], [99, 6, 0]).figures(100);
    expect(attempts).toHaveLength(60);
    expect(attempts.slice(-4)).toEqual([0, 4, 0, 6]);
    expect(errors.slice(-4)).toEqual([0, 1, 0, 0]);
    expect(attempts.slice(0, -4).every((count) => count === 0)).toBe(true);
  });

  test('moves with the time while there are no attempts', () => {
    const trend = ended([10, 3, 3]);
    expect(trend.figures(13).attempts.slice(-4)).toEqual([0, 3, 0, 0]);
    expect(trend.figures(70).attempts[0]).toBe(3);
    expect(trend.figures(71).attempts).not.toContain(3);
  });

  test('shows nothing old after a pause, however long it was', () => {
    for (const pause of [59, 60, 61, 500]) {
      const trend = ended([10, 3, 3], [10 + pause, 1, 0]);
      const { attempts } = trend.figures(11 + pause);
      expect(attempts.at(-1)).toBe(1);
      expect(attempts.filter((count) => count === 3)).toHaveLength(pause < 60 ? 1 : 0);
    }
  });
});
