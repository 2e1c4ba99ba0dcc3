import { describe, expect, test } from 'vitest';
import {
  type Admission,
  allocateClientLimits,
  ClientLimiter,
  ClientLimitTable,
  LimitRows,
} from '#access/limits';
import { InflightShares } from '../../src/fleet/inflight-shares.ts';

/** A gateway that admits requests of one client `a`, as it does with a heartbeat per second. */
function createGateway(id: string, maxInflight: number) {
  const table = new ClientLimitTable(allocateClientLimits(1));
  const rows = new LimitRows(table);
  const limits = { maxInflight, requestsPerMinute: null, tokensPerMinute: null };
  const client = { name: 'a', tenant: 'a', feature: null, models: null, expiresAtMs: null, keySha256: [] };
  const counted = rows.assign([{ ...client, ...limits }])[0]?.limits;
  if (counted == null) throw new Error('the client has limits');
  const limiter = new ClientLimiter(table, 0);
  const running: Admission[] = [];
  return {
    id,
    shares: new InflightShares(rows),
    get inflight() {
      return running.length;
    },
    /** Sends so many requests, which run until they are ended. Returns how many were admitted. */
    send(count: number): number {
      const before = running.length;
      for (let sent = 0; sent < count; sent++) {
        const admission = limiter.admit(counted);
        if (admission.refusal === null) running.push(admission);
      }
      return running.length - before;
    },
    end(count: number): void {
      for (const admission of running.splice(0, count)) admission.end(0);
    },
  };
}

type Gateway = ReturnType<typeof createGateway>;

/** Each gateway in turn reads what all wrote last, and writes its own heartbeat. */
function createExchange() {
  const store = new Map<string, Parameters<InflightShares['take']>[0][number]>();
  return {
    store,
    sync(...gateways: readonly Gateway[]): void {
      for (const { id, shares } of gateways) {
        const others = [...store.values()].filter((report) => report.id !== id);
        shares.take(others, id);
        store.set(id, { id, running: shares.nextReport() });
      }
    },
  };
}

function startTwo(maxInflight: number) {
  const [a, b] = [createGateway('a', maxInflight), createGateway('b', maxInflight)];
  const { sync, store } = createExchange();
  for (let round = 0; round < 3; round++) sync(a, b);
  return {
    a,
    b,
    store,
    sync: (rounds = 1) => {
      for (let round = 0; round < rounds; round++) sync(a, b);
    },
  };
}

describe('max_inflight in a fleet', () => {
  test('is divided before the first request, so that a burst on all gateways stays within it', () => {
    const { a, b } = startTwo(11);
    expect([a.send(100), b.send(100)]).toEqual([6, 5]);
  });

  test('goes to the gateway that needs it', () => {
    const { a, b, sync } = startTwo(10);
    expect(a.send(20)).toBe(5);
    sync(2);
    // The other one keeps one.
    expect(a.send(20)).toBe(4);
    expect(b.send(20)).toBe(1);
    sync();
    a.end(5);
    sync(2);
    expect(b.send(20)).toBeGreaterThan(2);
    expect(a.inflight + b.inflight).toBeLessThanOrEqual(10);
  });

  test('is not exceeded by more than 5 % under changing load, and mostly used', () => {
    const { a, b, sync } = startTwo(100);
    let state = 1;
    const random = (below: number) => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const sums: number[] = [];
    for (let second = 0; second < 500; second++) {
      const loads = second % 100 < 50 ? [200, 40] : [30, 200];
      for (const [index, gateway] of [a, b].entries()) {
        gateway.end(random(gateway.inflight + 1));
        gateway.send(loads[index] ?? 0);
      }
      sums.push(a.inflight + b.inflight);
      sync();
    }
    expect(Math.max(...sums)).toBeLessThanOrEqual(105);
    expect(sums.reduce((sum, each) => sum + each, 0) / sums.length).toBeGreaterThan(85);
  });

  test('of a gateway that is gone returns to the others, and is divided again when it is back', () => {
    const { a, b, store, sync } = startTwo(10);
    b.send(20);
    sync(2);
    store.delete('b');
    const alone = createExchange();
    alone.sync(a);
    expect(a.send(20)).toBe(10);
    const back = createGateway('b', 10);
    store.clear();
    const again = createExchange();
    for (let round = 0; round < 3; round++) again.sync(a, back);
    expect(back.send(20)).toBe(1);
    a.end(10);
    for (let round = 0; round < 3; round++) again.sync(a, back);
    expect(back.send(20) + 1 + a.send(20)).toBeLessThanOrEqual(10);
  });

  test('is divided evenly while the others cannot be heard', () => {
    const { a, sync } = startTwo(10);
    a.send(20);
    sync(2);
    expect(a.send(20)).toBe(4);
    a.end(9);
    a.shares.standAlone();
    expect(a.send(20)).toBe(5);
  });

  test('lets at least one request through each gateway', () => {
    const { a, b } = startTwo(1);
    expect([a.send(5), b.send(5)]).toEqual([1, 1]);
  });

  test('is forgotten in heartbeats ten of them after nobody wants anything', () => {
    const { a, b, store, sync } = startTwo(10);
    a.send(3);
    sync(2);
    a.end(3);
    sync(30);
    expect([...store.values()].map(({ running }) => running?.size)).toEqual([0, 0]);
    expect([a.send(20), b.send(20)]).toEqual([5, 5]);
  });
});
