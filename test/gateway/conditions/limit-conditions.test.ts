import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { allocateClientLimits, ClientLimiter, ClientLimitTable, LimitRows } from '#access/limits';
import { conditionsOf, linesOf, untilOver } from '#testkit/conditions.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { createLimitProducer } from '../../../src/gateway/conditions/limit-conditions.ts';

type Rows = Parameters<typeof createLimitProducer>[0];
type Refusals = ReturnType<Rows['takeRefusals']>[number];

const NO_LIMITS = { maxInflight: null, requestsPerMinute: null, tokensPerMinute: null };
const inflight = { limit: 'max_inflight' } as const;
const requests = { limit: 'requests_per_minute' } as const;
const tokens = { limit: 'tokens_per_minute' } as const;
const tenant = { name: 'tenant:x', owner: 'tenant', of: 'acme', ...inflight, count: 3 } as const;

function createProducer() {
  let nowMs = 0;
  let refusals: Refusals[] = [];
  let use: ReturnType<Rows['useOf']> = { used: 20, allowed: 20, share: 20, row: 7 };
  let holders: ReturnType<Parameters<typeof createLimitProducer>[1]> = new Map();
  const rows: Rows = { takeRefusals: () => refusals.splice(0), useOf: () => use };
  const produce = createLimitProducer(
    rows,
    () => holders,
    () => nowMs,
  );
  return {
    told: () => [...produce()].map(({ id, subject, figures }) => ({ id, subject, ...figures })),
    refuse: (...more: Refusals[]) => {
      refusals = more;
    },
    useIs: (next: typeof use) => {
      use = next;
    },
    hold: (row: number, streams: Readonly<Record<string, number>>) => {
      holders = new Map([[row, new Map(Object.entries(streams))]]);
    },
    pass: (seconds: number) => {
      nowMs += seconds * 1_000;
    },
  };
}

test('a limit is reached from three refused requests on, until none was refused for ten seconds and there is room', () => {
  const { told, refuse, pass, useIs } = createProducer();
  refuse({ ...tenant, count: 2 });
  expect(told()).toEqual([]);
  pass(5);
  refuse({ ...tenant, count: 32 });
  const figures = { limit: 'max_inflight', allowed: 20, used: 20, refused: 34, silent: 0, held: '' };
  expect(told()).toEqual([{ id: 'tenant_limit_reached', subject: 'acme', ...figures }]);
  pass(10);
  expect(told()).toHaveLength(1);
  useIs({ used: 19, allowed: 20, share: 19, row: 7 });
  expect(told()).toHaveLength(1);
  useIs({ used: 19, allowed: 20, share: 20, row: 7 });
  expect(told()).toEqual([]);
  refuse({ ...tenant, count: 1 });
  expect(told()).toHaveLength(1);
  pass(9);
  expect(told()).toHaveLength(1);
  useIs({ used: 20, allowed: 20, share: 20, row: 7 });
  pass(51);
  expect(told()).toEqual([]);
});

test('a limit that clients reach again as soon as Retry-After lets them does not come and go', () => {
  const { told, refuse, pass } = createProducer();
  refuse({ ...tenant, ...requests, count: 3 });
  for (let second = 0; second < 120; second++) {
    if (second % 12 === 11) refuse({ ...tenant, ...requests, count: 2 });
    expect(told()).toHaveLength(1);
    pass(1);
  }
});

test.each([
  [300, 4],
  [450, 3],
  [600, 4],
  [900, 4],
  [900, 3],
])(
  'a budget of tokens that requests of %i from %i clients exceed is one condition, until they stop',
  (estimate, count) => {
    let nowMs = 0;
    const table = new ClientLimitTable(allocateClientLimits(1), () => nowMs * 1e6);
    const rows = new LimitRows(table);
    rows.configureTenants({ jwt: null, tenantLimits: { acme: { ...NO_LIMITS, tokensPerMinute: 1_000 } } });
    const limits = {
      ...NO_LIMITS,
      tokensPerMinute: 1_000,
      owner: 'tenant',
      row: rows.rowOfTenant('tenant', 'acme') ?? 0,
    } as const;
    const limiter = new ClientLimiter(table, 0);
    const produce = createLimitProducer(
      rows,
      () => new Map(),
      () => nowMs,
    );
    const returnsMs = Array.from({ length: count }, () => 0);
    const seen: boolean[] = [];
    const look = () => {
      const isOn = [...produce()].length > 0;
      if (isOn !== (seen.at(-1) ?? false)) seen.push(isOn);
      nowMs += 1_000;
    };
    while (nowMs < 600_000) {
      for (const [index, atMs] of returnsMs.entries()) {
        if (nowMs < atMs) continue;
        const admission = limiter.admit(limits);
        if (admission.reserveTokens(estimate)) admission.end(estimate);
        returnsMs[index] = nowMs + 1_000 * (admission.refusal?.retryAfterSeconds ?? 1);
      }
      look();
    }
    expect(seen).toEqual([true]);
    while (nowMs < 700_000) look();
    expect(seen).toEqual([true, false]);
  },
);

test('of several limits of one subject the one that refuses most comes first', () => {
  const { told, refuse } = createProducer();
  refuse({ ...tenant, ...tokens, count: 4 }, { ...tenant, ...requests, count: 9 });
  expect(told()).toMatchObject([{ limit: 'requests_per_minute' }, { limit: 'tokens_per_minute' }]);
});

test('the share of one gateway is told, and a limit that is gone is not reached', () => {
  const { told, refuse, useIs } = createProducer();
  refuse({ ...tenant, owner: 'client', of: 'batch' });
  useIs({ used: 7, allowed: 20, share: 7, row: 7 });
  expect(told()).toMatchObject([
    { id: 'client_limit_reached', subject: 'batch', used: 7, held: ', this gateway may use 7 of it' },
  ]);
  useIs(null);
  expect(told()).toEqual([]);
});

test('the silent streams that hold places are counted, with the replicas that have most of them', () => {
  const { told, refuse, hold, useIs } = createProducer();
  refuse(tenant);
  hold(8, { r9: 3 });
  expect(told()).toMatchObject([{ silent: 0, held: '' }]);
  hold(7, { r3: 1 });
  expect(told()).toMatchObject([{ silent: 1, held: ', 1 place is held by a silent stream at r3' }]);
  hold(7, { r1: 1, r2: 1, r3: 5, r4: 2, r5: 2 });
  const held = ', 11 places are held by silent streams at r3 (5), r4 (2), r5 (2) and 2 more replicas';
  expect(told()).toMatchObject([{ silent: 11, held }]);
  useIs({ used: 7, allowed: 20, share: 7, row: 7 });
  expect(told()).toMatchObject([{ held: `, this gateway may use 7 of it${held}` }]);
  // In flight, they take nothing of a budget per minute.
  useIs({ used: 7, allowed: 20, share: 20, row: null });
  expect(told()).toMatchObject([{ silent: 0, held: '' }]);
});

test('names that clients choose are harmless and of bounded number', () => {
  const { told, refuse } = createProducer();
  const made = Array.from({ length: 5_000 }, (_, number) => ({
    ...tenant,
    name: `tenant:${number}`,
    of: `t\n${number}`,
  }));
  refuse(...made);
  const found = told();
  expect(found).toHaveLength(1_000);
  expect(found[0]?.subject).not.toContain('\n');
});

const clientOf = (name: string, limits: object) => ({
  name,
  key_sha256: createHash('sha256').update(name).digest('hex'),
  ...limits,
});

test.each([1, 2])('limits of a client and of a tenant are told, with %i workers', async (workers) => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({
    replicas: [replica],
    config: {
      gateway: { workers },
      clients: [
        clientOf('batch', { requests_per_minute: 6, tenant: 'other' }),
        clientOf('web', { tenant: 'acme' }),
      ],
      tenant_limits: { acme: { max_inflight: 2 } },
    },
  });
  const leaving = new AbortController();
  const send = (key: string) =>
    gateway.chat({}, { headers: { 'x-api-key': key }, signal: leaving.signal }).catch(() => null);
  const sent = ['web', 'batch'].flatMap((key) =>
    Array.from({ length: key === 'web' ? 7 : 11 }, () => send(key)),
  );
  const on = (id: string) => expect.poll(() => conditionsOf(gateway, id));
  await on('tenant_limit_reached').toMatchObject([
    {
      subject: 'acme',
      figures: { limit: 'max_inflight', allowed: 2, used: 2, refused: 5 },
      sentence: 'acme is at its limit max_inflight of 2: 5 requests refused in the last minute',
    },
  ]);
  await on('client_limit_reached').toMatchObject([
    { subject: 'batch', figures: { limit: 'requests_per_minute', allowed: 6, used: 6, refused: 5 } },
  ]);
  leaving.abort();
  await Promise.all(sent);
  await untilOver(gateway, 'tenant_limit_reached', 'client_limit_reached');
  expect(linesOf(gateway, 'tenant_limit_reached')).toHaveLength(2);
});
