import { expect, test } from 'vitest';
import { toFailureLine } from '../../../../../src/admin/dashboard/page/elements/scale.js';

test.each([
  [
    [0, 0, 0],
    [null, null, null],
  ],
  [
    [0, 0, 3, 0, 0, 1],
    [null, 0, 3, 0, 0, 1],
  ],
  [
    [null, 2, null],
    [null, 2, null],
  ],
  [[], []],
])('the line of the failures %j has a peak for each, and nothing where there are none', (failures, line) => {
  expect(toFailureLine(failures)).toEqual(line);
});
