import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { hang, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { chatAtOnce, spreadOf, startWorkers } from './start-workers.ts';

describe('several workers are one gateway', () => {
  test.each([2, 3])('%s of them distribute requests evenly', async (workers) => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using c = await startFakeReplica({ name: 'c' });
    await using gateway = await startWorkers(workers, { replicas: [a, b, c] });

    for (const answer of await Promise.all(chatAtOnce(gateway, 40))) {
      expect(answer?.status).toBe(200);
      await answer?.text();
    }

    expect(spreadOf([a, b, c])).toBeLessThanOrEqual(1);
    await gateway.waitForRecords(40);
    const { recorded, lost } = await gateway.stats();
    expect({ recorded, lost }).toEqual({ recorded: 40, lost: 0 });
  });

  test('requests stay evenly distributed when one replica refuses', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using c = await startFakeReplica({ name: 'c' });
    const down = { name: 'down', url: refusedUrlBeside(a) };
    await using gateway = await startWorkers(2, { replicas: [a, down, b, c] });

    for (const answer of await Promise.all(chatAtOnce(gateway, 40))) expect(answer?.status).toBe(200);

    expect(spreadOf([a, b, c])).toBeLessThanOrEqual(1);
  });

  test('the requests in flight are the sum over all workers', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica] });
    const leave = new AbortController();
    const waiting = chatAtOnce(gateway, 30, { signal: leave.signal });
    await replica.untilRequests(30);

    expect(await gateway.replicas()).toMatchObject([{ inflight: 30 }]);

    leave.abort();
    await Promise.all(waiting);
    await gateway.waitForRecords(30);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });

  test('records arrive complete, also those of large bodies', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const content = 'x'.repeat(100_000);

    await (await gateway.chat({ messages: [{ role: 'user', content }] })).text();
    await collector.waitFor(({ spans }) => spans.length === 1);

    const [record] = await gateway.waitForRecords(1);
    expect(record).toMatchObject({ prompt_chars: content.length, status: 200, replica: replica.name });
    expect(collector.spans[0]?.attributes['gateway.request_id']).toBe(record?.request_id);
    expect(collector.spans[0]?.resource['service.name']).toBe('spangate');
    const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
    expect(records).toMatchObject([{ request_id: record?.request_id }]);
  });

  test('all log lines are written by the main thread and name their worker', async () => {
    await using replica = await startFakeReplica();
    const down = { name: 'down', url: refusedUrlBeside(replica) };
    const config = { log: { level: 'debug' } };
    await using gateway = await startWorkers(2, { replicas: [down, replica], config });

    await (await gateway.chat()).text();

    expect(JSON.parse(await gateway.untilLogged('attempt failed'))).toMatchObject({
      level: 20,
      worker: expect.toBeOneOf([1, 2]),
      replica: 'down',
    });
  });

  test('a request sends no message to the main thread but its record, even where tenants have limits', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();
    const client = { name: 'app', tenant: 't', key_sha256: createHash('sha256').update('key').digest('hex') };
    const config = { clients: [client], tenant_limits: { default: { max_inflight: 1_000 } } };
    await using gateway = await startWorkers(2, { replicas: [replica], config });
    const send = async () => {
      const answers = await Promise.all(chatAtOnce(gateway, 20, { headers: { 'x-api-key': 'key' } }));
      expect(answers.map((answer) => answer?.status)).toEqual(Array(20).fill(200));
    };
    // Each worker asks once for the row of the tenant.
    await send();
    await gateway.waitForRecords(20);
    const names = new Set<unknown>();
    for (const thread of watched.threads) {
      thread.on('message', ({ kind, name }) => kind === 'call' && names.add(name));
    }
    await send();
    await gateway.waitForRecords(40);

    expect([...names]).toEqual(['onRecords']);
  });
});
