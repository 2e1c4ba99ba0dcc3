import { expect, test } from 'vitest';
import { capConnections } from '../../../src/gateway/serving/file-descriptors.ts';

test.each([
  [10_000, null, 10_000],
  [10_000, 1_048_576, 10_000],
  [10_000, 20_000 + 64 + 1_000, 10_000],
  [10_000, 20_000 + 64 + 1_000 - 1, 9_999],
  [10_000, 1_024, 416],
  [100, 1_024, 100],
  [10_000, 64, 1],
])('of %i connections with %s files, %i are accepted', (wanted, maxFiles, accepted) => {
  expect(capConnections(wanted, maxFiles)).toBe(accepted);
});
