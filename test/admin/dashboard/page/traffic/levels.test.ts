import { expect, test } from 'vitest';
import {
  toClientErrorLevel,
  toErrorLevel,
  toUseLevel,
} from '../../../../../src/admin/dashboard/page/traffic/levels.js';

test.each([
  [0, 0, ''],
  [0, 500, ''],
  [1, 500, ''],
  [5, 500, 'warn'],
  [24, 500, 'warn'],
  [25, 500, 'bad'],
  [1, 1, 'warn'],
  [2, 2, 'warn'],
  [3, 3, 'bad'],
])('%i errors in %i requests are "%s"', (errors, requests, level) => {
  expect(toErrorLevel(errors, requests)).toBe(level);
});

test.each([
  [0, 0, ''],
  [2, 2, ''],
  [3, 30, 'warn'],
  [3, 31, ''],
  [31, 31, 'warn'],
])('%i answers 4xx in %i requests are "%s"', (count, requests, level) => {
  expect(toClientErrorLevel(count, requests)).toBe(level);
});

test.each([
  [79, 100, ''],
  [80, 100, 'warn'],
  [95, 100, 'bad'],
  [5, 0, ''],
])('%i of a limit of %i is "%s"', (now, limit, level) => {
  expect(toUseLevel(now, limit)).toBe(level);
});
