import { expect, test } from 'vitest';
import { TenantLimits } from '../../src/client-limits/tenant-limits.ts';

const limits = { maxInflight: 1, requestsPerMinute: 60, tokensPerMinute: null };

test('the row of a tenant is known for ten minutes from the question on, and then asked for again', async () => {
  let nowMs = 0;
  const answers = [Promise.withResolvers<number | null>(), Promise.withResolvers<number | null>()];
  let askedCount = 0;
  const tenants = new TenantLimits(
    async () => (await answers[askedCount++]?.promise) ?? null,
    () => nowMs,
  );
  tenants.configure({ named: [], rest: limits });
  const first = tenants.limitsOf('a');
  nowMs = 60_000;
  answers[0]?.resolve(5);
  expect(await first).toEqual({ ...limits, row: 5 });
  nowMs = 599_999;
  expect(tenants.limitsOf('a')).toEqual({ ...limits, row: 5 });
  nowMs = 600_000;
  const again = tenants.limitsOf('a');
  answers[1]?.resolve(7);
  expect(await again).toEqual({ ...limits, row: 7 });
  expect(tenants.limitsOf('a')).toEqual({ ...limits, row: 7 });
  expect(askedCount).toBe(2);
});
