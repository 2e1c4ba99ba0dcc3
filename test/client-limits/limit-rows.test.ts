import { expect, test } from 'vitest';
import { allocateClientLimits, ClientLimitTable } from '../../src/client-limits/client-limit-table.ts';
import { LimitRows } from '../../src/client-limits/limit-rows.ts';
import { StartError } from '../../src/start-error.ts';

const limits = { maxInflight: 1, requestsPerMinute: 60, tokensPerMinute: null };
const clientOf = (name: string) => ({
  ...{ name, tenant: name, feature: null, models: null, expiresAtMs: null, keyDigests: [], limits },
});
const toRows = (clients: ReturnType<LimitRows['assign']>) => clients.map((client) => client.limits?.row);

test('a client keeps its row, also when it is gone for a time; one without limits has none', () => {
  const rows = new LimitRows(new ClientLimitTable(allocateClientLimits(1)));
  const [a, b] = toRows(rows.assign([clientOf('a'), clientOf('__proto__')]));
  expect(a).not.toBe(b);
  expect(toRows(rows.assign([clientOf('b'), clientOf('__proto__')]))).not.toContain(a);
  expect(toRows(rows.assign([{ ...clientOf('b'), limits: null }, clientOf('a')]))).toEqual([undefined, a]);
});

test('a row is reused when its client was gone before and has nothing in flight, with full budgets', () => {
  const table = new ClientLimitTable(allocateClientLimits(1));
  const rows = new LimitRows(table, { rowCount: 2 });
  const [a, b] = toRows(rows.assign([clientOf('a'), clientOf('b')])) as [number, number];
  table.beginInflight(0, a, null);
  table.charge('requests', b, 60e9);

  // A worker may still begin a request of `b`.
  expect(() => rows.assign([clientOf('a'), clientOf('c')])).toThrow(StartError);
  rows.assign([]);
  expect(toRows(rows.assign([clientOf('c')]))).toEqual([b]);
  expect(table.fullInNs('requests', b)).toBe(0);
  expect(() => rows.assign([clientOf('c'), clientOf('d')])).toThrow(StartError);
  table.endInflight(0, a);
  expect(toRows(rows.assign([clientOf('c'), clientOf('d')]))).toEqual([b, a]);
});

const MINUTE_MS = 60_000;

test('a tenant keeps its row while somebody asks for it, has requests in flight, or its budgets are not full', () => {
  let nowMs = 0;
  const table = new ClientLimitTable(allocateClientLimits(1), () => nowMs * 1e6);
  const rows = new LimitRows(table, { rowCount: 4, nowMs: () => nowMs });
  const forgotten: string[] = [];
  rows.onForgotten((name) => forgotten.push(name));
  const rowOf = (tenant: string) => rows.rowOfTenant('tenant', tenant);
  const [idle, running, owing, asked] = ['idle', 'running', 'owing', 'asked'].map(rowOf) as number[];
  table.addUsed('requests', Number(idle), 3);
  table.beginInflight(0, Number(running), null);
  table.charge('tokens', Number(owing), 3600e9);
  expect(rowOf('fifth')).toBeNull();

  nowMs = 29 * MINUTE_MS;
  expect([rowOf('asked'), rowOf('fifth')]).toEqual([asked, null]);
  nowMs = 31 * MINUTE_MS;
  expect(rowOf('fifth')).toBe(idle);
  expect(table.usedOf('requests', Number(idle))).toBe(0);
  expect(forgotten).toHaveLength(1);
  expect(rowOf('idle')).toBeNull();

  table.endInflight(0, Number(running));
  nowMs = 32 * MINUTE_MS;
  expect(rowOf('idle')).toBe(running);
  expect([rowOf('running'), rowOf('owing'), rowOf('asked')]).toEqual([null, owing, asked]);
});

test('tenants beyond the bound share a row, but not those with limits of their own, until others are idle', () => {
  let nowMs = 0;
  const table = new ClientLimitTable(allocateClientLimits(1));
  const rows = new LimitRows(table, { nowMs: () => nowMs });
  rows.configureTenants({
    jwt: limits,
    tenantLimits: { named: [{ tenant: 'own', limits }], rest: { ...limits, maxInflight: 7 } },
  });
  const first = rows.rowOfTenant('tenant', 'tenant-0');
  for (let index = 1; index < 65_536; index++) rows.rowOfTenant('tenant', `tenant-${index}`);
  const other = rows.rowOfTenant('tenant', 'tenant-65536');
  expect(rows.rowOfTenant('tenant', 'tenant-65537')).toBe(other);
  expect(rows.rowOfTenant('tenant', 'tenant-0')).toBe(first);
  const own = rows.rowOfTenant('tenant', 'own');
  expect(rows.rowOfTenant('jwt', 'own')).not.toBe(own);
  expect(new Set([first, other, own]).size).toBe(3);

  for (const row of [own, other] as number[]) table.addUsed('requests', row, 1);
  const [otherName, ownName] = [...rows.takeChanged().keys()];
  expect([otherName, ownName].map((name) => rows.maxInflightOf(String(name)))).toEqual([7, 1]);
  rows.configureTenants({ jwt: null, tenantLimits: null });
  expect([otherName, ownName].map((name) => rows.maxInflightOf(String(name)))).toEqual([null, null]);
  expect(rows.rowOfTenant('tenant', 'own')).toBe(own);

  nowMs = 31 * MINUTE_MS;
  const late = rows.rowOfTenant('tenant', 'tenant-65536');
  expect(rows.rowOfTenant('tenant', 'tenant-65537')).not.toBe(late);
});
