import { afterEach, describe, expect, test, vi } from 'vitest';
import { untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, partial, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const CANARY = 'canary-2d1f';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** The lines at level info and above, without their times. */
const linesOf = (gateway: StartedGateway) =>
  gateway.logLines
    .map((line) => JSON.parse(line) as { level: number; time: number; msg: string })
    .filter(({ level }) => level >= 30);

async function serve(gateway: StartedGateway, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await (await gateway.chat()).arrayBuffer();
}

describe('a change of state is one line:', () => {
  test('a collector lost and back, records dropped and no more', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      config: { export: { queue_size: 4, batch_size: 2, retry: { initial: '20ms', max: '50ms' } } },
    });
    collector.answerAlways({ status: 503 });
    await serve(gateway, 10);
    await untilCondition(gateway, 'collector_away');
    collector.answerAlways({});
    await untilOver(gateway, 'collector_away', 'records_dropped');
    const { dropped } = await gateway.stats();
    const told = linesOf(gateway).map(({ level, msg, ...fields }) => [
      level,
      msg.startsWith('over: '),
      fields,
    ]);
    const fields = (condition: string, more: object) => expect.objectContaining({ condition, ...more });
    expect(told).toHaveLength(4);
    expect(told).toEqual(
      expect.arrayContaining([
        [40, false, fields('collector_away', { reason: 'http_503', failed_calls: expect.any(Number) })],
        [30, true, fields('collector_away', { collector: `${collector.url}/v1/traces` })],
        [50, false, fields('records_dropped', {})],
        [30, true, fields('records_dropped', { dropped })],
      ]),
    );
  });

  test('a replica that requests cannot reach, and that it answers again: two lines beside its condition, whatever the number of workers', async () => {
    await using b = await startFakeReplica({ name: 'b' });
    const url = refusedUrlBeside(b);
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url }, b],
      config: { gateway: { workers: 2 } },
    });
    await serve(gateway, 12);
    const { hostname, port } = new URL(url);
    await gateway.untilLogged('replica a: nothing accepts connections');
    await using _a = await startFakeReplica({ address: hostname, port: Number(port) });
    await gateway.untilLogged('replica a: it answers now');
    await serve(gateway, 12);
    const lines = linesOf(gateway).filter((line) => !('condition' in line));
    expect(lines).toMatchObject([
      { level: 30, replica: 'a', reason: 'connection_refused' },
      { level: 30, replica: 'a', msg: 'replica a: it answers now' },
    ]);
  });
});

test('no log line holds a text, a token, a key or the credentials of an address, whatever fails', async () => {
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica({ name: 'b' });
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url.replace('://', `://user:${CANARY}@`));
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', `x-key=${CANARY}`);
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '100');
  await using gateway = await startGateway({
    replicas: [
      { name: 'a', url: `${refusedUrlBeside(replica)}/${CANARY}`, api_key: CANARY },
      { name: 'b', url: replica.url, api_key: CANARY },
    ],
    adminToken: CANARY,
    config: {
      export: { to: 'otlp', batch_size: 1, retry: { initial: '1ms', max: '5ms' } },
      log: { level: 'trace', requests: true },
      shutdown: { flush: '10ms' },
    },
  });
  collector.answerNext({ status: 400 }, { status: 413 }, { cut: true }, () => undefined);
  const messages = [{ role: 'user', content: CANARY }];

  replica.answerOnce(answerJson({ choices: [{ message: { content: CANARY } }] }));
  await (await gateway.chat({ messages })).arrayBuffer();
  replica.answerOnce(answerJson({ error: { message: CANARY } }, { status: 500 }));
  await (await gateway.chat({ messages })).arrayBuffer();
  replica.answerOnce(({ raw, cut }) => raw(`HTTP/1.1 200 ${CANARY}\r\n${CANARY}`).then(cut));
  await (await gateway.chat({ messages, stream: true })).arrayBuffer();
  const begun = `data: {"choices":[{"delta":{"content":"${CANARY}`;
  replica.answerOnce(partial('text/event-stream', [begun], 'reset'));
  await (await gateway.chat({ messages, stream: true })).text().catch(() => undefined);
  await (await gateway.post('/v1/chat/completions', `{"model":"m","messages":"${CANARY}`)).arrayBuffer();
  await (await gateway.post(`/v1/${CANARY}`, CANARY)).arrayBuffer();
  await (await gateway.admin(`/admin/replicas/b/drain?${CANARY}`, { method: 'POST' })).arrayBuffer();
  await (await gateway.chat({ messages, model: 'm' })).arrayBuffer();
  await (await fetch(`${gateway.adminUrl}/admin/stats?${CANARY}`)).arrayBuffer();
  await collector.waitFor(({ calls }) => calls.length > 4);
  collector.answerAlways({ status: 503 });
  await (await gateway.chat({ messages })).arrayBuffer();
  await gateway.untilLogged('records_rejected');
  await gateway.untilLogged('collector_away');
  await gateway.close();

  const log = gateway.logLines.join('\n');
  expect(log).toContain('attempt failed');
  expect(log).toContain('replica a: ');
  expect(log).toContain('"drain"');
  expect(log).not.toContain(CANARY);
});
