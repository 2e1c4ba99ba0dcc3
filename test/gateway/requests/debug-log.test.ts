import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerJson, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const DEBUG = { log: { level: 'debug' } } as const;

/** The lines about a request, without what varies. */
function stepsOf(gateway: StartedGateway, requestId: string | null | undefined) {
  return gateway.logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.request_id === requestId)
    .map(({ level, time, pid, hostname, request_id, trace_id, duration_ms, ...rest }) => rest);
}

test('level debug tells each step of a request, and names the request in each line', async () => {
  await using replica = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: refusedUrlBeside(replica) }, replica],
    config: DEBUG,
  });
  const response = await gateway.chat();
  await response.text();
  await gateway.untilLogged('request ended');
  expect(stepsOf(gateway, response.headers.get('x-request-id'))).toEqual([
    { msg: 'request begins', endpoint: '/v1/chat/completions' },
    { msg: 'replica chosen', replica: 'a', tried: 0 },
    { msg: 'attempt ended', replica: 'a', outcome: 'not_connected', next: 'next_replica' },
    { msg: 'attempt failed', replica: 'a', code: 'not_connected', error_code: 'ECONNREFUSED' },
    { msg: 'replica chosen', replica: 'b', tried: 1 },
    { msg: 'attempt ended', replica: 'b', outcome: 'relayed', next: 'done' },
    { msg: 'request ended', status: 200, end: 'sent' },
  ]);
});

test('a request that finds no replica, and one that its limit refuses, say so at level debug', async () => {
  await using replica = await startFakeReplica({ name: 'a', script: answerJson({}) });
  const key = 'key-of-app';
  const sha256 = createHash('sha256').update(key).digest('hex');
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: refusedUrlBeside(replica) }],
    config: {
      ...DEBUG,
      clients: [{ name: 'app', key_sha256: sha256, requests_per_minute: 1 }],
    },
  });
  const headers = { Authorization: `Bearer ${key}` };
  const [first, second] = [await gateway.chat({}, { headers }), await gateway.chat({}, { headers })];
  expect([first.status, second.status]).toEqual([502, 429]);
  expect(stepsOf(gateway, first.headers.get('x-request-id'))).toMatchObject([
    { msg: 'request begins' },
    { msg: 'limits asked' },
    { msg: 'replica chosen', replica: 'a' },
    { msg: 'attempt ended', outcome: 'not_connected' },
    { msg: 'attempt failed' },
    { msg: 'no replica', reason: 'no_replica_reachable', tried: 1 },
    { msg: 'request fails', code: 'no_replica_reachable' },
    { msg: 'request ended', status: 502 },
  ]);
  expect(stepsOf(gateway, second.headers.get('x-request-id'))).toMatchObject([
    { msg: 'request begins' },
    { msg: 'limits asked' },
    { msg: 'request fails', code: 'rate_limit_exceeded', refused_by: 'client.requests_per_minute' },
    { msg: 'request ended', status: 429 },
  ]);
});

test('other levels tell nothing of a request that succeeds', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { log: { level: 'info' } } });
  const response = await gateway.chat();
  await response.text();
  expect(stepsOf(gateway, response.headers.get('x-request-id'))).toEqual([]);
});
