import { expect, test } from 'vitest';
import { createAdminProducer } from '../../../src/gateway/conditions/admin-conditions.ts';

test('ten wrong tokens in a minute are told until there was none for ten seconds', () => {
  let nowMs = 0;
  const failedTokens = { count: 0 };
  const produce = createAdminProducer(failedTokens, () => nowMs);
  const told = () => [...produce()].map(({ figures }) => figures);
  failedTokens.count = 9;
  expect(told()).toEqual([]);
  nowMs = 30_000;
  failedTokens.count = 10;
  expect(told()).toEqual([{ refused: 10 }]);
  nowMs = 39_000;
  expect(told()).toHaveLength(1);
  nowMs = 40_000;
  expect(told()).toEqual([]);
  // Those of the first second are older than a minute.
  nowMs = 61_000;
  failedTokens.count = 12;
  expect(told()).toEqual([]);
});
