import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const UNTOUCHED = { recorded: 0, exported: 0, dropped: 0, rejected: 0, queued: 0, failed_calls: 0 };

let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  [replica, collector] = await Promise.all([startFakeReplica({ name: 'a' }), startFakeCollector()]);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([replica.close(), collector.close()]);
});

async function act(gateway: StartedGateway, action: 'drain' | 'undrain'): Promise<void> {
  const response = await gateway.admin(`/admin/replicas/a/${action}`, { method: 'POST' });
  expect(response.status).toBe(200);
  await response.arrayBuffer();
}

test('a drain and an undrain are spans with their own traces, and do not count as records', async () => {
  await using gateway = await startGateway({ replicas: [replica], collector });
  await act(gateway, 'drain');
  await act(gateway, 'undrain');
  await (await gateway.admin('/admin/replicas')).arrayBuffer();
  await collector.waitFor(({ spans }) => spans.length === 2);
  const [drain, undrain] = collector.spans;
  expect(drain).toMatchObject({
    name: 'drain',
    kind: 1,
    parentSpanId: undefined,
    attributes: { 'gateway.replica': 'a', 'gateway.was_drained': false, 'gateway.inflight': 0 },
    resource: { 'service.name': 'spangate' },
  });
  expect(undrain).toMatchObject({ name: 'undrain', attributes: { 'gateway.was_drained': true } });
  expect(undrain?.traceId).not.toBe(drain?.traceId);
  expect(Number(drain?.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(drain?.startTimeUnixNano));
  expect(await gateway.stats()).toMatchObject(UNTOUCHED);
  await gateway.close();
  expect(collector.spans).toHaveLength(2);
});

test('the reason of an action is in its span', async () => {
  await using gateway = await startGateway({ replicas: [replica], collector });
  await gateway.admin('/admin/replicas/a/drain?reason=new+weights', { method: 'POST' });
  await act(gateway, 'undrain');
  await collector.waitFor(({ spans }) => spans.length === 2);
  const [drain, undrain] = collector.spans;
  expect(drain?.attributes).toMatchObject({ 'gateway.reason': 'new weights' });
  expect(undrain?.attributes).not.toHaveProperty('gateway.reason');
});

test('an action just before the shutdown is still sent', async () => {
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    config: { export: { interval: '1h' } },
  });
  await act(gateway, 'drain');
  await gateway.close();
  expect(collector.spans.map(({ name }) => name)).toEqual(['drain']);
});

test('a collector that hangs delays neither the action nor the shutdown, and costs no record', async () => {
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    config: { shutdown: { flush: '20ms' } },
  });
  collector.answerAlways(() => undefined);
  await act(gateway, 'drain');
  expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
});

test('the headers and OTEL_SDK_DISABLED of the environment apply to them', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-key=k');
  {
    await using gateway = await startGateway({ replicas: [replica], collector });
    await act(gateway, 'drain');
  }
  expect(collector.calls[0]?.headers).toMatchObject({ 'x-key': 'k' });
  vi.stubEnv('OTEL_SDK_DISABLED', 'true');
  {
    await using gateway = await startGateway({ replicas: [replica], collector });
    await act(gateway, 'drain');
  }
  expect(collector.calls).toHaveLength(1);
});

test('with records in files, actions are only logged', async () => {
  await using gateway = await startGateway({ replicas: [replica] });
  await act(gateway, 'drain');
  expect(gateway.logLines.join('\n')).toContain('"action":"drain"');
  expect((await readdir(gateway.stateDir)).toSorted()).toEqual([
    ...['drains.json', 'instance-id', expect.stringMatching(/^lock\./), 'owner.json', 'records.jsonl'],
  ]);
  expect(collector.calls).toHaveLength(0);
});
