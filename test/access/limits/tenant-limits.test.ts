import { expect, test, vi } from 'vitest';
import { TenantLimits } from '../../../src/access/limits/tenant-limits.ts';

const limits = { maxInflight: 1, requestsPerMinute: 60, tokensPerMinute: null };
const counted = { ...limits, owner: 'tenant' };

test('the row of a tenant is known for ten minutes from the question on, and then asked for again', async () => {
  let nowMs = 0;
  const answers = [Promise.withResolvers<number | null>(), Promise.withResolvers<number | null>()];
  let askedCount = 0;
  const tenants = new TenantLimits(
    async () => (await answers[askedCount++]?.promise) ?? null,
    () => nowMs,
  );
  tenants.configure({ default: limits });
  const first = tenants.limitsOf('a');
  nowMs = 60_000;
  answers[0]?.resolve(5);
  expect(await first).toEqual({ ...counted, row: 5 });
  nowMs = 599_999;
  expect(tenants.limitsOf('a')).toEqual({ ...counted, row: 5 });
  nowMs = 600_000;
  const again = tenants.limitsOf('a');
  answers[1]?.resolve(7);
  expect(await again).toEqual({ ...counted, row: 7 });
  expect(tenants.limitsOf('a')).toEqual({ ...counted, row: 7 });
  expect(askedCount).toBe(2);
});

test('the ten minutes pass on the clock of the process', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    const rows = [5, 7];
    const tenants = new TenantLimits(async () => rows.shift() ?? null);
    tenants.configure({ default: limits });
    await tenants.limitsOf('a');
    clock.mockReturnValue(600_000);
    expect(await tenants.limitsOf('a')).toEqual({ ...counted, row: 7 });
  } finally {
    clock.mockRestore();
  }
});

test('a tenant for which there is no row cannot be counted, and is asked for again', async () => {
  const rows = [null, 3];
  const tenants = new TenantLimits(async () => rows.shift() ?? null);
  tenants.configure({ default: limits });
  expect(await tenants.limitsOf('a')).toBe('limits_unavailable');
  expect(await tenants.limitsOf('a')).toEqual({ ...counted, row: 3 });
  expect(tenants.limitsOf('a')).toEqual({ ...counted, row: 3 });
});

test('rows are asked for again after the limits of tenants have changed', async () => {
  let row = 0;
  const tenants = new TenantLimits(async () => row++);
  tenants.configure({ default: limits });
  await tenants.limitsOf('a');
  tenants.configure({ a: limits });
  expect(await tenants.limitsOf('a')).toEqual({ ...counted, row: 1 });
  expect(tenants.limitsOf('b')).toBeNull();
});

test('at most 65,536 tenants are known; with one more, all are asked for again', async () => {
  let askedCount = 0;
  const tenants = new TenantLimits(async () => askedCount++);
  tenants.configure({ default: limits });
  for (let index = 0; index < 65_536; index++) await tenants.limitsOf(`${index}`);
  expect(tenants.limitsOf('0')).toEqual({ ...counted, row: 0 });
  await tenants.limitsOf('one more');
  expect(tenants.limitsOf('one more')).toEqual({ ...counted, row: 65_536 });
  expect(await tenants.limitsOf('0')).toEqual({ ...counted, row: 65_537 });
});
