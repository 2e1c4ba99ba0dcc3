import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { runConcurrently } from './collector/collector-clients.ts';
import { CONCURRENCY, configured, startSimulations, untilStats } from './simulations.ts';

describe('under load', () => {
  test('a collector that is away fails no request, and gets every record when it is back', async () => {
    await using simulations = await startSimulations([{ name: 'a' }, { name: 'b' }]);
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({
      replicas: configured(simulations),
      collector,
      config: { export: { retry: { initial: '1ms', max: '5ms' } } },
    });
    const send = async () => {
      const response = await gateway.chat({ max_tokens: 2 });
      expect(response.status).toBe(200);
      await response.text();
    };

    await runConcurrently(50, CONCURRENCY, send);
    collector.answerAlways({ cut: true });
    await runConcurrently(150, CONCURRENCY, send);
    const away = await untilStats(gateway, ({ failed_calls = 0 }) => failed_calls >= 3);
    expect(away.queued).toBeGreaterThan(0);
    collector.answerAlways({});
    await runConcurrently(50, CONCURRENCY, send);

    const back = await untilStats(gateway, ({ exported }) => exported === 250);
    expect(back).toMatchObject({ dropped: 0, rejected: 0, queued: 0, recorded: 250 });
    const ids = new Set(collector.spans.flatMap((span) => span.attributes['gateway.request_id'] ?? []));
    expect(ids).toEqual(new Set(gateway.records.map((record) => record.request_id)));
  });

  test('a replica that is killed costs only the requests that had begun on it', async () => {
    await using simulations = await startSimulations(
      ['a', 'b', 'c'].map((name) => ({ name, ttftMs: 2, gapMs: 1 })),
    );
    const [killed] = simulations;
    await using gateway = await startGateway({ replicas: configured(simulations) });
    const dead = Promise.withResolvers<void>();
    const idsAfter = new Set<string>();
    const statusesAfter: number[] = [];

    await runConcurrently(240, CONCURRENCY, async (index) => {
      if (index === 80) {
        await killed?.replica.close();
        dead.resolve();
      }
      const beginsAfter = index >= 100;
      if (beginsAfter) await dead.promise;
      const response = await gateway.chat({ stream: true });
      await response.text();
      if (!beginsAfter) return;
      statusesAfter.push(response.status);
      idsAfter.add(response.headers.get('x-request-id') ?? '');
    });

    const records = await gateway.waitForRecords(240);
    const failed = records.filter(({ status, truncated }) => status !== 200 || truncated === true);
    expect(failed.every(({ replica }) => replica === 'a')).toBe(true);
    expect(failed.length).toBeLessThanOrEqual(CONCURRENCY);
    expect(statusesAfter).toEqual(Array.from({ length: 140 }, () => 200));
    expect(failed.filter(({ request_id }) => idsAfter.has(request_id))).toEqual([]);
  });

  test('a replica that is drained gets nothing new once drain has answered, and finishes its streams', async () => {
    await using simulations = await startSimulations(
      ['a', 'b'].map((name) => ({ name, ttftMs: 2, gapMs: 1 })),
    );
    await using gateway = await startGateway({ replicas: configured(simulations) });
    const drained = Promise.withResolvers<void>();
    const idsAfter = new Set<string>();

    await runConcurrently(200, CONCURRENCY, async (index) => {
      if (index === 75) {
        await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
        drained.resolve();
      }
      const beginsAfter = index >= 100;
      if (beginsAfter) await drained.promise;
      const response = await gateway.chat({ stream: true });
      const text = await response.text();
      expect(text).toMatch(/data: \[DONE\]\n\n$/);
      if (beginsAfter) idsAfter.add(response.headers.get('x-request-id') ?? '');
    });

    const records = await gateway.waitForRecords(200);
    expect(records.every(({ status, truncated }) => status === 200 && truncated === undefined)).toBe(true);
    expect(idsAfter.size).toBe(100);
    const onDrained = records.filter(({ replica }) => replica === 'a').map(({ request_id }) => request_id);
    expect(onDrained.length).toBeGreaterThan(25);
    expect(onDrained.filter((id) => idsAfter.has(id))).toEqual([]);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0, safe_to_stop: true }, { inflight: 0 }]);
  });
});
