import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { StartError } from '#base';
import { allocateClientLimits, ClientLimitTable } from '../../../src/access/limits/client-limit-table.ts';
import { LimitRows } from '../../../src/access/limits/limit-rows.ts';

const limits = { maxInflight: 1, requestsPerMinute: 60, tokensPerMinute: null };
const noLimits = { maxInflight: null, requestsPerMinute: null, tokensPerMinute: null };
const clientOf = (name: string) => ({
  name,
  tenant: name,
  feature: null,
  models: null,
  expiresAtMs: null,
  keySha256: [],
  ...limits,
});
const toRows = (clients: ReturnType<LimitRows['assign']>) => clients.map((client) => client.limits?.row);

test('a client keeps its row, also when it is gone for a time; one without limits has none', () => {
  const rows = new LimitRows(new ClientLimitTable(allocateClientLimits(1)));
  const [a, b] = toRows(rows.assign([clientOf('a'), clientOf('__proto__')]));
  expect(a).not.toBe(b);
  expect(toRows(rows.assign([clientOf('b'), clientOf('__proto__')]))).not.toContain(a);
  expect(toRows(rows.assign([{ ...clientOf('b'), ...noLimits }, clientOf('a')]))).toEqual([undefined, a]);
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
    tenantLimits: { own: limits, default: { ...limits, maxInflight: 7 } },
  });
  const first = rows.rowOfTenant('tenant', 'tenant-0');
  for (let index = 1; index < 65_535; index++) rows.rowOfTenant('tenant', `tenant-${index}`);
  const last = rows.rowOfTenant('tenant', 'tenant-65535');
  const other = rows.rowOfTenant('tenant', 'tenant-65536');
  expect(last).not.toBe(other);
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

test('a tenant beyond the bound has a row of its own as soon as one that is idle leaves, and only so many', () => {
  let nowMs = 0;
  const rows = new LimitRows(new ClientLimitTable(allocateClientLimits(1)), { nowMs: () => nowMs });
  const isOther = (tenant: string) => rows.nameOf(Number(rows.rowOfTenant('jwt', tenant))) === 'jwt:_OTHER';
  rows.rowOfTenant('jwt', 'idle');
  nowMs = 20 * MINUTE_MS;
  for (let index = 2; index < 65_536; index++) rows.rowOfTenant('jwt', `tenant-${index}`);
  expect(isOther('last')).toBe(false);
  nowMs = 31 * MINUTE_MS;
  expect([isOther('new'), isOther('one more')]).toEqual([false, true]);
});

/** Rows of tenants at a time that the test sets, with the names whose use began at nothing again. */
function startTenants(rowCount: number) {
  const time = { nowMs: 0 };
  const table = new ClientLimitTable(allocateClientLimits(1), () => 1e15 + time.nowMs * 1e6);
  const rows = new LimitRows(table, { rowCount, nowMs: () => time.nowMs });
  const forgotten: string[] = [];
  rows.onForgotten((name) => forgotten.push(name));
  return { time, table, rows, forgotten, rowOf: (tenant: string) => rows.rowOfTenant('tenant', tenant) };
}

describe('the row of an idle tenant', () => {
  test('is looked for when no row is left, and again after ten seconds', () => {
    const { time, table, rowOf } = startTenants(1);
    const row = Number(rowOf('a'));
    table.beginInflight(0, row, null);
    time.nowMs = 30 * MINUTE_MS;
    expect(rowOf('b')).toBeNull();
    table.endInflight(0, row);
    time.nowMs += 9_999;
    expect(rowOf('b')).toBeNull();
    time.nowMs += 1;
    expect(rowOf('b')).toBe(row);
  });

  test('is free after half an hour, and not before', () => {
    const { time, rowOf } = startTenants(1);
    const row = rowOf('a');
    time.nowMs = 30 * MINUTE_MS - 1;
    expect(rowOf('b')).toBeNull();
    time.nowMs += 10_000;
    expect(rowOf('b')).toBe(row);
    time.nowMs += 30 * MINUTE_MS;
    expect(rowOf('c')).toBe(row);
  });

  test('stays with it while there are others, or the tenant asks again', () => {
    const { time, forgotten, rowOf } = startTenants(2);
    const row = rowOf('a');
    time.nowMs = 31 * MINUTE_MS;
    const second = rowOf('b');
    expect([rowOf('a'), rowOf('b'), forgotten]).toEqual([row, second, []]);
  });

  test('belongs to no one until another tenant needs it', () => {
    const { time, rows, rowOf } = startTenants(2);
    const both = [rowOf('a'), rowOf('b')].map(Number);
    const names = both.map((row) => rows.nameOf(row));
    expect([names[0], names[1]]).toEqual([
      expect.stringMatching(/^tenant:/),
      expect.stringMatching(/^tenant:/),
    ]);
    time.nowMs = 31 * MINUTE_MS;
    const taken = Number(rowOf('c'));
    const rest = both.filter((row) => row !== taken);
    expect(rest.map((row) => rows.nameOf(row))).toEqual([null]);
    expect(names).not.toContain(rows.nameOf(taken));
  });

  test('is that of the tenant that asked longest ago, also if it came later', () => {
    const { time, rowOf } = startTenants(2);
    rowOf('a');
    const second = rowOf('b');
    time.nowMs = 29 * MINUTE_MS;
    rowOf('a');
    time.nowMs = 31 * MINUTE_MS;
    expect(rowOf('c')).toBe(second);
  });

  test('is not free on the clock of the process before it has passed', () => {
    const rows = new LimitRows(new ClientLimitTable(allocateClientLimits(1)), { rowCount: 1 });
    rows.rowOfTenant('jwt', 'a');
    expect(rows.rowOfTenant('jwt', 'b')).toBeNull();
  });
});

describe('the limits of a tenant', () => {
  const nameOf = (kind: string, tenant: string) =>
    `${kind}:${createHash('sha256').update(tenant).digest('base64url').slice(0, 22)}`;

  test('are those of its kind, under a name that every gateway of a fleet computes alike', () => {
    const { rows, table } = startTenants(3);
    const own = { ...limits, maxInflight: 3 };
    rows.configureTenants({
      jwt: { ...limits, maxInflight: 2 },
      tenantLimits: { b: own, default: { ...limits, maxInflight: 4 } },
    });
    const all = [
      rows.rowOfTenant('jwt', 'a'),
      rows.rowOfTenant('tenant', 'a'),
      rows.rowOfTenant('tenant', 'b'),
    ];
    for (const row of all) table.addUsed('tokens', Number(row), 1);
    expect([...rows.takeChanged().keys()].map((name) => [name, rows.maxInflightOf(name)])).toEqual([
      [nameOf('jwt', 'a'), 2],
      [nameOf('tenant', 'a'), 4],
      [nameOf('tenant', 'b'), 3],
    ]);
  });

  test('are none where none are set: nothing is charged, and nothing is told of what is in flight', () => {
    const { rows, table } = startTenants(3);
    rows.configureTenants({
      jwt: null,
      tenantLimits: { b: noLimits },
    });
    const tenants = [
      ['jwt', 'a'],
      ['tenant', 'a'],
      ['tenant', 'b'],
    ] as const;
    for (const [kind, tenant] of tenants) {
      const row = Number(rows.rowOfTenant(kind, tenant));
      const name = nameOf(kind, tenant);
      table.beginInflight(0, row, null);
      rows.charge(name, { requests: 5, tokens: 5 });
      expect(rows.maxInflightOf(name)).toBeNull();
      expect([table.fullInNs('requests', row), table.fullInNs('tokens', row)]).toEqual([0, 0]);
    }
    expect(rows.takeInflight().size).toBe(0);
  });
});

test('a tenant that is named without limits has none, whatever the others have', () => {
  const { rows, table } = startTenants(2);
  rows.configureTenants({
    jwt: null,
    tenantLimits: { b: noLimits, default: limits },
  });
  for (const tenant of ['a', 'b']) table.addUsed('tokens', Number(rows.rowOfTenant('tenant', tenant)), 1);
  expect([...rows.takeChanged().keys()].map((name) => rows.maxInflightOf(name))).toEqual([1, null]);
});

describe('the limits of clients', () => {
  test('need rows only of those that have some', () => {
    const rows = new LimitRows(new ClientLimitTable(allocateClientLimits(1)), { rowCount: 1 });
    expect(toRows(rows.assign([clientOf('a'), { ...clientOf('b'), ...noLimits }]))).toEqual([0, undefined]);
    expect(rows.takeChanged().size).toBe(0);
    expect(rows.takeInflight().size).toBe(0);
    expect(() => rows.assign([clientOf('a'), clientOf('c')])).toThrow('more than 1');
  });

  test('take the row of a former client only if no other is left, and not that of a tenant', () => {
    const { rows, forgotten, rowOf } = startTenants(4);
    const [a, b] = toRows(rows.assign([clientOf('a'), clientOf('b')]));
    rows.assign([]);
    rows.assign([clientOf('c')]);
    expect(forgotten).toEqual([]);
    expect(rowOf('tenant')).not.toBeNull();
    // Two rows are those of former clients: the other two are those of `c` and the tenant.
    expect(() => rows.assign(['d', 'e', 'f'].map(clientOf))).toThrow(StartError);
    // A former client that returns keeps its row, and the new one gets that of the other.
    expect(toRows(rows.assign([clientOf('b'), clientOf('a')]))).toEqual([b, a]);
    rows.assign([]);
    expect(toRows(rows.assign([clientOf('a'), clientOf('x'), clientOf('y')]))).toContain(a);
    expect(forgotten).not.toContain('a');
  });

  test('are charged for what was used elsewhere, one request too, and at most for a minute', () => {
    const { rows, table } = startTenants(1);
    rows.assign([clientOf('a')]);
    rows.charge('a', { requests: 1, tokens: 1 });
    expect([table.fullInNs('requests', 0), table.fullInNs('tokens', 0)]).toEqual([1e9, 0]);
    rows.charge('a', { requests: 1_000, tokens: 0 });
    expect(table.fullInNs('requests', 0)).toBe(61e9);
  });

  test('are charged for tokens that were used here, at most for a minute, or they are given back', () => {
    const { rows, table } = startTenants(2);
    rows.assign([{ ...clientOf('a'), tokensPerMinute: 60 }, clientOf('b')]);
    const stateAfter = (tokens: number) => {
      rows.useTokens('a', tokens);
      return [table.fullInNs('tokens', 0), table.usedOf('tokens', 0)];
    };
    expect([30, -10, 600, 1].map(stateAfter)).toEqual([
      [30e9, 30],
      [20e9, 20],
      [80e9, 80],
      [81e9, 81],
    ]);
    expect([...rows.takeChanged().keys()]).toEqual(['a']);
    rows.useTokens('a', 0);
    rows.useTokens('b', 5);
    rows.useTokens('unknown', 5);
    expect(rows.takeChanged().size).toBe(0);
    expect([table.isUnused(1), rows.nameOf(0), rows.nameOf(1), rows.nameOf(2)]).toEqual([
      true,
      'a',
      'b',
      null,
    ]);
  });

  test('tell what is in flight and what was refused, each once', () => {
    const { rows, table } = startTenants(2);
    rows.assign([clientOf('a'), clientOf('b')]);
    table.beginInflight(0, 0, 1);
    expect(rows.takeInflight()).toEqual(new Map([['a', { inflight: 1, refused: 0 }]]));
    table.beginInflight(0, 0, 1);
    table.endInflight(0, 0);
    expect(rows.takeInflight()).toEqual(new Map([['a', { inflight: 0, refused: 1 }]]));
    expect(rows.takeInflight().size).toBe(0);
  });

  test('have no effect under a name that nobody has', () => {
    const { rows, table } = startTenants(1);
    rows.setShare('unknown', 1);
    rows.charge('unknown', { requests: 1, tokens: 1 });
    expect([rows.maxInflightOf('unknown'), table.isUnused(0)]).toEqual([null, true]);
  });

  test('have the idle share when they come back, if theirs was given up while they were gone', () => {
    const { rows } = startTenants(1);
    const clients = [{ ...clientOf('a'), maxInflight: 8 }];
    rows.assign(clients);
    rows.divideBy(2, 0);
    rows.setShare('a', 7);
    rows.assign([]);
    rows.setShare('a', null);
    rows.assign(clients);
    expect(rows.useOf('a', 'max_inflight')).toMatchObject({ allowed: 8, share: 4 });
  });

  test('lose what a worker that died had in flight', () => {
    const { rows, table } = startTenants(2);
    rows.assign([clientOf('a'), clientOf('b')]);
    for (const row of [0, 1]) table.beginInflight(0, row, null);
    table.clearWorker(0);
    expect([table.inflightOf(0), table.inflightOf(1)]).toEqual([0, 0]);
  });
});

test('tells which limits have refused requests, once, with what the client or tenant is called', () => {
  const table = new ClientLimitTable(allocateClientLimits(1), () => 0);
  const rows = new LimitRows(table);
  rows.configureTenants({ jwt: null, tenantLimits: { default: limits } });
  const [client] = toRows(rows.assign([clientOf('a')])) as [number];
  const called = `acme ${'x'.repeat(1_000)}`;
  const tenant = Number(rows.rowOfTenant('tenant', called));
  expect(rows.takeRefusals()).toEqual([]);
  table.noteRefusal('requests_per_minute', client);
  for (let refused = 0; refused < 3; refused += 1) table.noteRefusal('max_inflight', tenant);
  const [ofClient, ofTenant] = rows.takeRefusals();
  expect(ofClient).toEqual({ name: 'a', owner: 'client', of: 'a', limit: 'requests_per_minute', count: 1 });
  expect(ofTenant).toMatchObject({ owner: 'tenant', limit: 'max_inflight', count: 3 });
  expect(ofTenant?.of).toBe(called.slice(0, 128));
  expect(rows.takeRefusals()).toEqual([]);
});

test('tells how much of a limit is used, and how much of it is the share of this gateway', () => {
  const table = new ClientLimitTable(allocateClientLimits(1), () => 0);
  const rows = new LimitRows(table);
  const many = { maxInflight: 10, requestsPerMinute: 60, tokensPerMinute: null };
  const [row] = toRows(rows.assign([{ ...clientOf('a'), ...many }])) as [number];
  table.beginInflight(0, row, 10);
  table.charge('requests', row, 30e9);
  rows.divideBy(2, 0);
  rows.setShare('a', 4);
  expect(rows.useOf('a', 'max_inflight')).toEqual({ used: 1, allowed: 10, share: 4, row });
  expect(rows.useOf('a', 'requests_per_minute')).toEqual({ used: 30, allowed: 60, share: 60, row: null });
  expect([rows.useOf('a', 'tokens_per_minute'), rows.useOf('nobody', 'max_inflight')]).toEqual([null, null]);
});

test('what was refused is forgotten with the row', () => {
  const table = new ClientLimitTable(allocateClientLimits(1));
  table.noteRefusal('tokens_per_minute', 3);
  table.clearRow(3);
  expect(table.takeRefusals('tokens_per_minute', 3)).toBe(0);
});
