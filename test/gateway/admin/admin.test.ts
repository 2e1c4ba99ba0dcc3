import { describe, expect, test } from 'vitest';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

describe('GET /admin/replicas', () => {
  /** What is the same of all replicas that nothing has happened to. */
  const UNTOUCHED = {
    drained: false,
    since: null,
    reason: null,
    safe_to_stop: false,
    ramp: null,
    removing: false,
    shadow: null,
    inflight: 0,
    background: 0,
    background_unknown: 0,
    max_inflight: null,
    silent_streams: { count: 0, running: 0, oldest_ms: null },
    health: null,
    health_reasons: [],
    health_since: null,
    reachability: 'reachable',
    reachability_since: expect.stringMatching(/Z$/),
    reachability_reason: null,
  };

  test('shows each replica in configured order, with what is known of it and no key', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [
        {
          name: 'a',
          url: a.url,
          host: 'gpu-1',
          gpu_model: 'H100',
          gpu_count: 8,
          engine: 'vllm',
          api_key: 'secret-key',
        },
        { name: 'b', url: `${a.url}/prefix/`, models: ['*'] },
      ],
    });

    for (const name of ['a', 'b']) await gateway.untilReachability(name, 'reachable');
    const response = await gateway.admin('/admin/replicas');

    expect(response.headers.get('content-type')).toBe('application/json');
    const text = await response.text();
    expect(text).not.toContain('secret-key');
    expect(JSON.parse(text)).toEqual({
      replicas: [
        {
          ...UNTOUCHED,
          name: 'a',
          url: a.url,
          host: 'gpu-1',
          gpu_model: 'H100',
          gpu_count: 8,
          models: ['m'],
          engine: 'vllm',
        },
        {
          ...UNTOUCHED,
          name: 'b',
          url: `${a.url}/prefix`,
          host: '127.0.0.1',
          gpu_model: null,
          gpu_count: null,
          models: ['*'],
          engine: 'openai',
        },
      ],
      sources: [],
      waiting: 0,
    });
  });

  test('counts in flight what holds a lease: waiting, streaming, and no more when it ended', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica] });
    const leave = new AbortController();
    const waiting = Array.from({ length: 3 }, () =>
      gateway.chat({}, { signal: leave.signal }).catch(() => undefined),
    );
    await replica.untilRequests(3);

    expect(await gateway.replicas()).toMatchObject([{ inflight: 3 }]);

    leave.abort();
    await Promise.all(waiting);
    await gateway.waitForRecords(3);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });
});

describe('figures of the admin API', () => {
  test.each([1, 2])('workers: %i: they hold every request that has ended', async (workers) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: { gateway: { workers } } });

    for (let count = 1; count <= 10; count++) {
      await (await gateway.chat()).text();

      expect(await gateway.stats()).toMatchObject({ recorded: count, lost: 0 });
      const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
      expect(records).toHaveLength(count);
    }
  });
});

describe('GET /admin/stats', () => {
  test('shows all counters, which add up', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    for (let i = 0; i < 3; i++) await (await gateway.chat()).text();
    await gateway.waitForRecords(3);

    const stats = await gateway.stats();

    expect(Object.keys(stats)).toEqual(
      expect.arrayContaining(['exported', 'dropped', 'queued', 'failed_calls', 'recorded', 'rejected']),
    );
    const { recorded = 0, exported = 0, queued = 0, dropped, failed_calls, rejected } = stats;
    expect({ recorded, dropped, failed_calls, rejected }).toEqual({
      recorded: 3,
      dropped: 0,
      failed_calls: 0,
      rejected: 0,
    });
    expect(exported + queued).toBe(3);
  });
});

test('the client-facing port in use is one clear line', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const listen = gateway.url.replace('http://', '');

  await expect(startGateway({ replicas: [replica], config: { gateway: { listen } } })).rejects.toThrow(
    /^gateway\.listen 127\.0\.0\.1:\d+: the port is already in use by .* \(process \d+\): .*$/,
  );
  await expect(
    startGateway({ replicas: [replica], config: { gateway: { admin_listen: listen } } }),
  ).rejects.toThrow(
    /^gateway\.admin_listen 127\.0\.0\.1:\d+: the port is already in use by .* \(process \d+\): .*$/,
  );
});
