import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

async function serve(gateway: StartedGateway, count: number): Promise<void> {
  // Connections of their own: the system spreads them over the workers.
  const headers = { connection: 'close' };
  const responses = await Promise.all(Array.from({ length: count }, () => gateway.chat({}, { headers })));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
}

/** The numbers of each instance, in order. */
function numbersOf(spans: readonly { readonly attributes: Readonly<Record<string, unknown>> }[]) {
  const byInstance = Map.groupBy(spans, ({ attributes }) => String(attributes['gateway.instance']));
  return new Map(
    [...byInstance].map(([instance, group]) => [
      instance,
      group.map(({ attributes }) => Number(attributes['gateway.seq'])).sort((a, b) => a - b),
    ]),
  );
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('the numbers of records', () => {
  test('have no gap, whatever becomes of the requests', async () => {
    await using replica = await startFakeReplica();
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({ replicas: [replica], collector });
    await Promise.all([
      serve(gateway, 20),
      gateway.chat({ model: 'unknown' }),
      gateway.post('/v1/chat/completions', '{'),
    ]);
    await collector.waitFor(({ spans }) => spans.length === 22);
    expect([...numbersOf(collector.spans).values()]).toEqual([upTo(22)]);
  });

  test('have no gap in any worker, and each worker has an instance of its own', async () => {
    await using replica = await startFakeReplica();
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      config: { gateway: { workers: 2 } },
    });
    await serve(gateway, 60);
    await collector.waitFor(({ spans }) => spans.length === 60);
    const numbers = numbersOf(collector.spans);
    for (const list of numbers.values()) expect(list).toEqual(upTo(list.length));
    const runs = new Set([...numbers.keys()].map((instance) => instance.replace(/\.[12]$/, '')));
    expect(runs.size).toBe(1);
  });

  test('begin again in another instance at each start, and records from the spool keep theirs', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
    try {
      await using replica = await startFakeReplica();
      await using collector = await startFakeCollector();
      const options = { replicas: [replica], collector, stateDir, config: { shutdown: { flush: '50ms' } } };
      collector.answerAlways({ status: 503 });
      await using first = await startGateway(options);
      await serve(first, 3);
      await first.close();
      collector.answerAlways({});
      const before = collector.spans.length;
      await using second = await startGateway(options);
      await serve(second, 2);
      await collector.waitFor(({ spans }) => spans.length === before + 5);
      expect([...numbersOf(collector.spans.slice(before)).values()]).toEqual([upTo(3), upTo(2)]);
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});
