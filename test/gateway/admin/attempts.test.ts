import { describe, expect, test } from 'vitest';
import type { OverviewReplica } from '#testkit/dashboard/made-overview.ts';
import { answerJson, type FakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/*
 * A replica whose failures another replica makes good: its errors are those of its attempts, while clients have none.
 */

const RETRY = { retry: { statuses: [429, 503] } };

const refuse = (replica: FakeReplica, status: number) => replica.answer(answerJson({}, { status }));

const readOverview = async (gateway: StartedGateway) =>
  (await (await gateway.admin('/admin/overview')).json()) as {
    readonly last_minute: object;
    readonly models: readonly object[];
    readonly replicas: readonly OverviewReplica[];
  };

async function send(gateway: StartedGateway, count: number): Promise<void> {
  const before = gateway.records.length;
  // Without kept connections, so that a replica that has gone is noticed when it is connected to.
  for (let sent = 0; sent < count; sent++) {
    await (await gateway.chat({}, { headers: { Connection: 'close' } })).arrayBuffer();
  }
  await gateway.waitForRecords(before + count);
}

describe.each([1, 2])('with %i workers and `retry`', (workers) => {
  test('a replica that answers 503 has errors, while its model and the gateway have none', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    refuse(replicas[0], 503);
    await using gateway = await startGateway({ replicas, config: { gateway: { workers }, ...RETRY } });

    await send(gateway, 20);

    const overview = await readOverview(gateway);
    const tried = overview.replicas[0]?.last_minute.attempts ?? 0;
    expect(tried).toBeGreaterThan(0);
    expect(overview.last_minute).toMatchObject({ requests: 20, errors: 0 });
    expect(overview.models).toMatchObject([{ name: 'm', last_minute: { requests: 20, errors: 0 } }]);
    expect(overview.replicas).toMatchObject([
      {
        name: 'a',
        last_minute: {
          requests: 0,
          errors: tried,
          outcomes: { error: tried, success: 0 },
          latency_p50_ms: null,
        },
      },
      { name: 'b', last_minute: { requests: 20, attempts: 20, errors: 0, outcomes: { success: 20 } } },
    ]);
  });
});

test('attempts that were retried for a 4xx are no errors, and those that could not connect are', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  const [a] = replicas;
  refuse(a, 429);
  await using gateway = await startGateway({ replicas, config: RETRY });
  await send(gateway, 4);
  const busy = (await readOverview(gateway)).replicas[0]?.last_minute;
  const tried = busy?.attempts ?? 0;
  expect(tried).toBeGreaterThan(0);
  expect(busy).toMatchObject({ errors: 0, client_errors: tried, outcomes: { client_error: tried } });

  await a.close();
  await send(gateway, 4);
  const { last_minute, replicas: seen } = await readOverview(gateway);
  const gone = seen[0]?.last_minute;
  expect(last_minute).toMatchObject({ requests: 8, errors: 0 });
  expect(gone?.outcomes.not_connected).toBeGreaterThan(0);
  expect(gone).toMatchObject({ client_errors: tried, errors: gone?.outcomes.not_connected });
});

test('a drained replica that was chosen is no attempt', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  await using gateway = await startGateway({ replicas, config: RETRY });
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  await send(gateway, 3);
  expect((await readOverview(gateway)).replicas).toMatchObject([
    { name: 'a', last_minute: { requests: 0, attempts: 0, errors: 0 } },
    { name: 'b', last_minute: { requests: 3, attempts: 3, errors: 0 } },
  ]);
});
