import { describe, expect, test, vi } from 'vitest';
import { ClientLimiter, type ClientLimits } from '../../../src/access/limits/admission.ts';
import { allocateClientLimits, ClientLimitTable } from '../../../src/access/limits/client-limit-table.ts';

/** Two workers with one memory and a clock that the test moves. */
function startTwoWorkers(limits: Partial<ClientLimits>, tenantLimits?: Partial<ClientLimits>) {
  const memory = allocateClientLimits(2);
  let nowNs = 1e15;
  const table = new ClientLimitTable(memory, () => nowNs);
  table.noteUsedRows(2);
  const none = { maxInflight: null, requestsPerMinute: null, tokensPerMinute: null };
  const all = { row: 0, owner: 'client', ...none, ...limits } as const;
  const ofTenant = tenantLimits && ({ row: 1, owner: 'tenant', ...none, ...tenantLimits } as const);
  const limiters = [new ClientLimiter(table, 0), new ClientLimiter(table, 1)] as const;
  return {
    table,
    pass: (seconds: number) => {
      nowNs += seconds * 1e9;
    },
    admit: (worker: 0 | 1 = 0) => limiters[worker].admit(all, ofTenant ?? null),
  };
}

describe('requests per minute', () => {
  test('pass at the rate of the limit after its whole budget was used, whatever the worker', () => {
    const { admit, pass } = startTwoWorkers({ requestsPerMinute: 600 });
    const countAdmitted = (count: number) =>
      Array.from({ length: count }, (_, index) => admit(index % 2 === 0 ? 0 : 1)).filter(
        ({ refusal }) => refusal === null,
      ).length;
    expect(countAdmitted(1000)).toBe(600);
    let admitted = 0;
    for (let second = 0; second < 600; second++) {
      pass(1);
      admitted += countAdmitted(100);
    }
    expect(admitted).toBe(6000);
    pass(3600);
    expect(countAdmitted(1000)).toBe(600);
  });

  test('are told to the client with each answer, and when to come back with a refusal', () => {
    const { admit, pass } = startTwoWorkers({ requestsPerMinute: 2 });
    expect(admit().fieldLines()).toBe(
      'x-ratelimit-limit-requests: 2\r\nx-ratelimit-remaining-requests: 1\r\nx-ratelimit-reset-requests: 30s\r\n',
    );
    admit();
    pass(10.5);
    const refused = admit();
    expect(refused.refusal?.key).toBe('requests_per_minute');
    expect(refused.fieldLines()).toBe(
      'x-ratelimit-limit-requests: 2\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 49.5s\r\nRetry-After: 20\r\n',
    );
  });
});

describe('requests in flight', () => {
  test('are counted over all workers, end once, and those of a worker that died are gone', () => {
    const { admit, table } = startTwoWorkers({ maxInflight: 2 });
    const [first, second] = [admit(0), admit(1)];
    expect(admit(0)).toMatchObject({ refusal: { key: 'max_inflight', limit: 2 } });
    expect(admit(0).fieldLines()).toBe('Retry-After: 1\r\n');
    first.end(0);
    first.end(0);
    expect(table.inflightOf(0)).toBe(1);
    expect(admit(0).refusal).toBeNull();
    table.clearWorker(0);
    expect(table.inflightOf(0)).toBe(1);
    second.end(0);
    expect(table.inflightOf(0)).toBe(0);
  });

  test('do not include those that another limit refused', () => {
    const { admit, table } = startTwoWorkers({ maxInflight: 5, requestsPerMinute: 1 });
    admit().end(0);
    const refused = admit();
    refused.end(0);
    expect(refused.refusal?.key).toBe('requests_per_minute');
    expect(table.inflightOf(0)).toBe(0);
  });
});

describe('tokens per minute', () => {
  test('are reserved by estimate and charged by use', () => {
    const { admit } = startTwoWorkers({ tokensPerMinute: 1000, requestsPerMinute: 100 });
    const first = admit();
    expect(first.reserveTokens(600)).toBe(true);
    const second = admit();
    expect(second.reserveTokens(600)).toBe(false);
    expect(second.refusal?.key).toBe('tokens_per_minute');
    expect(second.fieldLines()).toContain('x-ratelimit-remaining-tokens: 400\r\n');
    expect(second.fieldLines()).toContain('x-ratelimit-remaining-requests: 99\r\n');
    expect(second.fieldLines()).toContain('Retry-After: 12\r\n');
    second.end(0);
    first.end(100);
    const third = admit();
    expect(third.reserveTokens(900)).toBe(true);
    third.end(2900);
    const fourth = admit();
    expect(fourth.reserveTokens(1)).toBe(false);
    expect(fourth.fieldLines()).toContain('Retry-After: 121\r\n');
  });

  test('an estimate beyond the whole budget needs a full one', () => {
    const { admit, pass } = startTwoWorkers({ tokensPerMinute: 1000 });
    const first = admit();
    expect(first.reserveTokens(5000)).toBe(true);
    expect(admit().reserveTokens(0.5)).toBe(false);
    first.end(500);
    expect(admit().reserveTokens(5000)).toBe(false);
    pass(30);
    expect(admit().reserveTokens(5000)).toBe(true);
  });

  test('are charged by use alone for a request that reserved none, a part of one as a whole', () => {
    const { admit, table } = startTwoWorkers({ tokensPerMinute: 1000 });
    admit().end(9.5);
    expect(table.usedOf('tokens', 0)).toBe(10);
  });

  test('are charged at the end only if the estimate was wrong, be it by one', () => {
    const { admit, table } = startTwoWorkers({ tokensPerMinute: 1000 });
    const [right, wrong] = [admit(), admit()];
    for (const admission of [right, wrong]) admission.reserveTokens(30);
    expect(table.takeChanged(0)).toBe(true);
    right.end(30);
    expect(table.takeChanged(0)).toBe(false);
    wrong.end(31);
    expect([table.takeChanged(0), table.usedOf('tokens', 0)]).toEqual([true, 61]);
  });

  test('what an engine reports costs an hour at most', () => {
    const { admit, pass } = startTwoWorkers({ tokensPerMinute: 10 });
    admit().end(1e9);
    pass(3599);
    expect(admit().reserveTokens(10)).toBe(false);
    pass(1);
    expect(admit().reserveTokens(10)).toBe(true);
  });
});

describe('the limits of a client and of its tenant', () => {
  test('must all admit a request; the fields tell the tighter budget and the longer wait', () => {
    const { admit } = startTwoWorkers({ requestsPerMinute: 60 }, { requestsPerMinute: 2 });
    expect(admit().fieldLines()).toContain(
      'x-ratelimit-limit-requests: 2\r\nx-ratelimit-remaining-requests: 1\r\n',
    );
    expect(admit().refusal).toBeNull();
    const refused = admit();
    expect(refused.refusal?.key).toBe('requests_per_minute');
    expect(refused.fieldLines()).toBe(
      'x-ratelimit-limit-requests: 2\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 1m0s\r\nRetry-After: 30\r\n',
    );
  });

  test('each show in the fields when the other has no such budget, or more left', () => {
    const { admit } = startTwoWorkers(
      { requestsPerMinute: 5, tokensPerMinute: 1000 },
      { tokensPerMinute: 5000, requestsPerMinute: 50 },
    );
    const lines = admit().fieldLines();
    expect(lines).toContain('x-ratelimit-limit-requests: 5\r\n');
    expect(lines).toContain('x-ratelimit-limit-tokens: 1000\r\n');
    expect(startTwoWorkers({ maxInflight: 3 }, { tokensPerMinute: 7 }).admit().fieldLines()).toContain(
      'x-ratelimit-limit-tokens: 7\r\n',
    );
  });

  test.each([
    ['max_inflight', { requestsPerMinute: 10, tokensPerMinute: 100, maxInflight: 10 }, { maxInflight: 1 }],
    [
      'requests_per_minute',
      { requestsPerMinute: 10, tokensPerMinute: 100, maxInflight: 10 },
      { requestsPerMinute: 1 },
    ],
    [
      'tokens_per_minute',
      { requestsPerMinute: 10, tokensPerMinute: 100, maxInflight: 10 },
      { tokensPerMinute: 30 },
    ],
  ])('give back what they have taken when the other refuses: %s', (key, client, tenant) => {
    const { admit, table } = startTwoWorkers(client, tenant);
    const running = admit();
    expect(running.reserveTokens(30)).toBe(true);
    const stateOf = () => [
      table.inflightOf(0),
      table.inflightOf(1),
      ...(['requests', 'tokens'] as const).flatMap((budget) => [
        table.fullInNs(budget, 0),
        table.usedOf(budget, 0),
        table.fullInNs(budget, 1),
        table.usedOf(budget, 1),
      ]),
    ];
    const before = stateOf();
    for (let sent = 0; sent < 20; sent++) {
      const refused = admit();
      if (refused.refusal === null) refused.reserveTokens(30);
      expect(refused.refusal).toMatchObject({ key, owner: 'tenant' });
      refused.end(30);
      expect(stateOf()).toEqual(before);
    }
    running.end(30);
    expect([table.inflightOf(0), table.inflightOf(1)]).toEqual([0, 0]);
  });

  test('charge both for the tokens that the engine reported', () => {
    const { admit, table } = startTwoWorkers({ tokensPerMinute: 100 }, { tokensPerMinute: 50 });
    const running = admit();
    expect(running.reserveTokens(80)).toBe(true);
    expect([table.usedOf('tokens', 0), table.usedOf('tokens', 1)]).toEqual([80, 50]);
    running.end(40);
    expect([table.usedOf('tokens', 0), table.usedOf('tokens', 1)]).toEqual([40, 40]);
  });
});

test('a refusal names whose limit it is, and the wait is that of the limits that there are', () => {
  const { admit } = startTwoWorkers({ requestsPerMinute: 1 }, { maxInflight: 5 });
  admit();
  const refused = admit();
  expect(refused.refusedBy).toBe('client.requests_per_minute');
  expect(refused.refusal).toEqual({
    owner: 'client',
    key: 'requests_per_minute',
    limit: 1,
    retryAfterSeconds: 60,
  });
});

test('an admission says where its use is counted', () => {
  const { rows } = startTwoWorkers({ requestsPerMinute: 1 }, { tokensPerMinute: 7 }).admit();
  expect(rows).toEqual([0, 1]);
});

test('the clock of the threads is the same', async () => {
  const memory = allocateClientLimits(1);
  const tables = [new ClientLimitTable(memory), new ClientLimitTable(memory)] as const;
  tables[0].charge('requests', 0, 30e9);
  expect(Math.abs(tables[1].fullInNs('requests', 0) - 30e9)).toBeLessThan(1e9);
});

test('a budget refills with the time that passes', () => {
  const startMs = performance.now();
  const table = new ClientLimitTable(allocateClientLimits(1));
  const clock = vi.spyOn(performance, 'now').mockReturnValue(startMs);
  try {
    table.charge('requests', 0, 30e9);
    clock.mockReturnValue(startMs + 10_000);
    expect(Math.abs(table.fullInNs('requests', 0) - 20e9)).toBeLessThan(1_000);
  } finally {
    clock.mockRestore();
  }
});
