import { describe, expect, test } from 'vitest';
import { allocateClientLimits, ClientLimiter, ClientLimitTable, LimitRows } from '#access/limits';
import { ClientUseExchange } from '../../src/fleet/client-use.ts';

const NONE = new Map();

/** Gateways that exchange the use of one client `a` when the test says so, with a clock that the test moves. */
function startGateways(count: number, limits: { requestsPerMinute?: number; tokensPerMinute?: number }) {
  let nowNs = 1e15;
  const all = { maxInflight: null, requestsPerMinute: null, tokensPerMinute: null, ...limits };
  const client = { name: 'a', tenant: 'a', feature: null, models: null, expiresAtMs: null, keySha256: [] };
  const gateways = Array.from({ length: count }, (_, index) => {
    const table = new ClientLimitTable(allocateClientLimits(1), () => nowNs);
    const rows = new LimitRows(table);
    const [assigned] = rows.assign([{ ...client, ...all }]);
    const counted = assigned?.limits;
    if (counted == null) throw new Error('the client has limits');
    const limiter = new ClientLimiter(table, 0);
    return {
      id: `gateway-${index}`,
      exchange: new ClientUseExchange(rows),
      admit: () => limiter.admit(counted),
    };
  });
  let number = 0;
  const sync = () => {
    number += 1;
    const heartbeats = gateways.map(({ id, exchange }) => ({
      id,
      number,
      revision: 1,
      heard: NONE,
      drained: NONE,
      inflight: NONE,
      used: exchange.nextReport(),
    }));
    for (const { id, exchange } of gateways) exchange.take(heartbeats, id);
  };
  sync();
  return {
    gateways,
    sync,
    pass: (seconds: number) => {
      nowNs += seconds * 1e9;
    },
  };
}

describe('the gateways of a fleet', () => {
  test.each([2, 3])('%s of them admit what one would, within 5 %%, after the first budget', (count) => {
    const { gateways, sync, pass } = startGateways(count, { requestsPerMinute: 600 });
    const admittedPerMinute: number[] = [];
    for (let minute = 0; minute < 40; minute++) {
      let admitted = 0;
      for (let second = 0; second < 60; second++) {
        pass(1);
        for (const { admit } of gateways) {
          for (let sent = 0; sent < 40; sent++) {
            const admission = admit();
            if (admission.refusal === null) admitted += 1;
            admission.end(0);
          }
        }
        sync();
      }
      admittedPerMinute.push(admitted);
    }
    const steady = admittedPerMinute.slice(10);
    const average = steady.reduce((sum, admitted) => sum + admitted, 0) / steady.length;
    expect(average).toBeLessThanOrEqual(630);
    expect(average).toBeGreaterThan(540);
  });

  test('charge tokens that another gateway has counted, and give back what it had overestimated', () => {
    const { gateways, sync } = startGateways(2, { tokensPerMinute: 1000 });
    const [a, b] = gateways;
    const running = a?.admit();
    expect(running?.reserveTokens(800)).toBe(true);
    sync();
    expect(b?.admit().reserveTokens(300)).toBe(false);
    for (let repeated = 0; repeated < 20; repeated++) sync();
    expect(b?.admit().reserveTokens(200)).toBe(true);
    running?.end(100);
    sync();
    expect(b?.admit().reserveTokens(700)).toBe(true);
    expect(b?.admit().reserveTokens(10)).toBe(false);
  });

  test('tell of a client for ten heartbeats after its last request', () => {
    const { gateways, sync } = startGateways(1, { requestsPerMinute: 600 });
    const [gateway] = gateways;
    gateway?.admit();
    const reports = Array.from({ length: 12 }, () => gateway?.exchange.nextReport().get('a'));
    expect(reports).toEqual([...Array(10).fill({ requests: 1, tokens: 0 }), undefined, undefined]);
    gateway?.admit();
    expect(gateway?.exchange.nextReport().get('a')).toEqual({ requests: 1, tokens: 0 });
    sync();
  });

  describe('charge what a gateway tells', () => {
    function startReader() {
      const charged: number[] = [];
      const exchange = new ClientUseExchange({
        takeChanged: () => NONE,
        onForgotten: () => undefined,
        charge: (_, { requests }) => charged.push(requests),
      });
      /** Reads the heartbeat of another gateway; null: there is none. */
      const read = (number: number | null, requests = 0) => {
        const used = new Map([['a', { requests, tokens: 0 }]]);
        const own = { id: 'own', number: 1, used: new Map([['a', { requests: 999, tokens: 0 }]]) };
        exchange.take(number === null ? [own] : [own, { id: 'other', number, used }], 'own');
      };
      return { charged, read };
    }

    test('since it is known', () => {
      const { charged, read } = startReader();
      read(7, 500);
      read(8, 510);
      read(9, 505);
      expect(charged).toEqual([10, -5]);
    });

    test('after an outage of the store, whichever of them writes first', () => {
      const { charged, read } = startReader();
      read(7, 500);
      read(null);
      read(8, 520);
      expect(charged).toEqual([20]);
    });

    test('and nothing if it has been away for longer', () => {
      const { charged, read } = startReader();
      read(7, 500);
      for (let count = 0; count < 20; count++) read(null);
      read(8, 520);
      expect(charged).toEqual([]);
    });

    test.each([
      ['has been started anew', 1],
      ['has told much that was not read', 40],
    ])('and give nothing back when it %s, and counts from another beginning', (_, number) => {
      const { charged, read } = startReader();
      read(7, 500);
      read(number, 5);
      read(number + 1, 9);
      expect(charged).toEqual([4]);
    });
  });

  test('admit what the tenant of two clients may use, within 5 %, and charge its refusals to no client', () => {
    let nowNs = 1e15;
    const noLimits = { maxInflight: null, tokensPerMinute: null };
    const clientOf = (name: string) => ({
      name,
      tenant: 't',
      feature: null,
      models: null,
      expiresAtMs: null,
      keySha256: [],
      ...noLimits,
      requestsPerMinute: 480,
    });
    const tenantLimits = { ...noLimits, requestsPerMinute: 600 };
    const gateways = ['one', 'two'].map((id) => {
      const table = new ClientLimitTable(allocateClientLimits(1), () => nowNs);
      const rows = new LimitRows(table);
      rows.configureTenants({ jwt: null, tenantLimits: { default: tenantLimits } });
      const clients = rows.assign([clientOf('a'), clientOf('b')]);
      const row = rows.rowOfTenant('tenant', 't') ?? -1;
      const limiter = new ClientLimiter(table, 0);
      const admit = (client: number) => {
        const counted = clients[client]?.limits;
        if (counted == null) throw new Error('the client has limits');
        return limiter.admit(counted, { ...tenantLimits, owner: 'tenant', row });
      };
      return { id, rows, admit, exchange: new ClientUseExchange(rows) };
    });
    const passed = [0, 0];
    let number = 0;
    const sync = () => {
      number += 1;
      const heartbeats = gateways.map(({ id, exchange }) => ({ id, number, used: exchange.nextReport() }));
      for (const { id, exchange } of gateways) exchange.take(heartbeats, id);
    };
    sync();
    for (let second = 0; second < 2400; second++) {
      nowNs += 1e9;
      for (const { admit } of gateways) {
        for (let sent = 0; sent < 40; sent++) {
          const client = (sent + second) % 2;
          const admission = admit(client);
          // The first ten minutes use up the budgets of the start.
          if (admission.refusal === null && second >= 600) passed[client] = (passed[client] ?? 0) + 1;
          admission.end(0);
        }
      }
      sync();
    }
    const perMinute = passed.map((count) => count / 30);
    const sum = perMinute.reduce((total, count) => total + count, 0);
    expect(sum).toBeLessThanOrEqual(630);
    expect(sum).toBeGreaterThan(540);
    // Beyond what the tenant may use, neither client is at its own limit.
    for (const count of perMinute) expect(count).toBeLessThan(480);
  });
});

test('with more clients than one heartbeat holds, none is charged more than it has used', () => {
  const clients = Array.from({ length: 5_500 }, (_, index) => ({ name: `c${index}`, requests: 0 }));
  let changed = new Map<string, { requests: number; tokens: number }>();
  const port = { takeChanged: () => changed, charge: () => undefined, onForgotten: () => undefined };
  const sender = new ClientUseExchange(port);
  const charged = new Map<string, number>();
  const charge = (name: string, { requests }: { requests: number }) =>
    charged.set(name, (charged.get(name) ?? 0) + requests);
  const reader = new ClientUseExchange({ ...port, takeChanged: () => NONE, charge });
  for (let number = 1; number <= 60; number++) {
    reader.take([{ id: 'other', number, used: sender.nextReport() }], 'own');
    const active = number > 20 ? [] : clients.filter((_, index) => (index + number) % 3 !== 0);
    for (const client of active) client.requests += 1;
    changed = new Map(active.map(({ name, requests }) => [name, { requests, tokens: 0 }]));
  }
  for (const { name, requests } of clients) expect(charged.get(name)).toBe(requests);
});

test('a client whose use begins at nothing again is not given back what it has used before', () => {
  let forget: (name: string) => void = () => undefined;
  let changed = new Map([['a', { requests: 10, tokens: 0 }]]);
  const exchange = new ClientUseExchange({
    takeChanged: () => changed,
    charge: () => undefined,
    onForgotten: (listener) => {
      forget = listener;
    },
  });
  exchange.nextReport();
  changed = new Map();
  // It stays in some heartbeats, and what follows counts from there.
  while (exchange.nextReport().size > 0);
  forget('a');
  changed = new Map([['a', { requests: 1, tokens: 0 }]]);
  expect(exchange.nextReport()).toEqual(changed);
});
