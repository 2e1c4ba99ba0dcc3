import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readAdminTokens } from '#config/secrets';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';
import { ROUTES } from '../../../src/admin/route-table.ts';

const TOKEN = 'test-drain-token-0001';

const tokensFor = async (scope: string) =>
  (await readAdminTokens({ SVC_DRAIN_TOKEN: `${scope}: ${TOKEN}` })).tokens;

/** Calls as a pod does: with curl. */
async function curl(gateway: StartedGateway, path: string, method = 'POST') {
  const { stdout } = await promisify(execFile)('curl', [
    ...['--silent', '--show-error', '--request', method, '--write-out', '\n%{http_code}'],
    ...['--header', `Authorization: Bearer ${TOKEN}`, gateway.adminUrl + path],
  ]);
  const [status = '', ...body] = stdout.trimEnd().split('\n').toReversed();
  return { status: Number(status), body: JSON.parse(body.toReversed().join('\n')) as unknown };
}

const refused = (code: string) => ({ error: { code } });

test('a drain token drains and undrains the replicas that it names, and may do nothing else', async () => {
  await using a = await startFakeReplica({ name: 'vllm-0' });
  await using b = await startFakeReplica({ name: 'other' });
  const moreTokens = await tokensFor('vllm-*');
  await using gateway = await startGateway({ replicas: [a, b], moreTokens });
  for (const { method, path, isPage } of ROUTES) {
    if (isPage) continue;
    const { status, body } = await curl(gateway, path.replace('{name}', 'other'), method);
    // The one call that takes a code of its own, and no token.
    const answer = path === '/admin/sign-in' ? [401, refused('unauthorized')] : [403, refused('drain_token')];
    expect([status, body], `${method} ${path}`).toMatchObject(answer);
  }
  for (const path of ['/admin/replicas/vllm-0', '/admin/replicas/vllm-0/probe', '/admin/replicas/x/drain']) {
    const method = path.endsWith('0') ? 'GET' : 'POST';
    expect(await curl(gateway, path, method)).toMatchObject({ status: 403, body: refused('drain_token') });
  }
  expect(await curl(gateway, '/admin/replicas/vllm-0/drain?reason=mine')).toMatchObject({
    status: 200,
    body: { was_drained: false, replica: { drained: true, reason: 'pod stops', safe_to_stop: true } },
  });
  expect(await gateway.untilLogged('"msg":"drain"')).toContain('"token_name":"drainer of vllm-*"');
  expect(await curl(gateway, '/admin/replicas/vllm-0/undrain')).toMatchObject({ status: 200 });
  expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: false }]);
});

test('a name without a star is that name alone', async () => {
  await using a = await startFakeReplica({ name: 'vllm-1' });
  await using b = await startFakeReplica({ name: 'vllm-10' });
  await using gateway = await startGateway({ replicas: [a, b], moreTokens: await tokensFor('x,vllm-1') });
  expect((await curl(gateway, '/admin/replicas/vllm-1/drain')).status).toBe(200);
  expect((await curl(gateway, '/admin/replicas/vllm-10/drain')).status).toBe(403);
});

test('a pod does not end the drain of an operator', async () => {
  await using a = await startFakeReplica({ name: 'vllm-0' });
  await using gateway = await startGateway({ replicas: [a], moreTokens: await tokensFor('vllm-0') });
  await gateway.admin('/admin/replicas/vllm-0/drain?reason=new%20disk', { method: 'POST' });
  expect(await curl(gateway, '/admin/replicas/vllm-0/drain')).toMatchObject({
    body: { was_drained: true, replica: { reason: 'new disk' } },
  });
  expect(await curl(gateway, '/admin/replicas/vllm-0/undrain')).toMatchObject({
    status: 409,
    body: refused('drained_by_other'),
  });
  expect(await gateway.replicas()).toMatchObject([{ drained: true, reason: 'new disk' }]);
});

test('a pod that stops waits for its last request, also after Kubernetes has removed it, and comes back', async () => {
  await using replica = await startFakeReplica();
  await using api = await startFakeApiServer();
  const ports = [{ name: 'http', port: Number(new URL(replica.url).port) }];
  const put = (state: object) =>
    api.put({ name: 's', ports, pods: [{ name: 'vllm-0', address: '127.0.0.1', ...state }] });
  put({});
  const services = [
    {
      name: 'vllm',
      models: ['m'],
      engine: 'openai',
      kubernetes: { service: 'vllm', namespace: 'llm', api_server: api.url },
    },
  ];
  const moreTokens = await tokensFor('vllm-*');
  await using gateway = await startGateway({ replicas: [], services, moreTokens });
  await api.untilWatched();
  const gate = createGate();
  replica.answerOnce(gate.script);
  const running = gateway.chat();
  await replica.untilRequests(1);

  put({ terminating: true });
  await gateway.untilLogged('"removed":["vllm-0"]');
  let isOver = false;
  const stopping = curl(gateway, '/admin/replicas/vllm-0/drain?wait=20s').finally(() => {
    isOver = true;
  });
  await gateway.untilLogged('"msg":"drain"');
  expect(isOver).toBe(false);
  gate.open();
  expect((await running).status).toBe(200);
  expect(await stopping).toMatchObject({
    status: 200,
    body: { replica: { inflight: 0, safe_to_stop: true } },
  });

  // It is idle and forgotten: nothing is left to wait for.
  await expect.poll(() => gateway.replicas()).toEqual([]);
  expect(await curl(gateway, '/admin/replicas/vllm-0/drain')).toMatchObject({ status: 404 });
  expect(await curl(gateway, '/admin/replicas/vllm-0/undrain')).toMatchObject({ status: 200 });
  put({ uid: 'again' });
  await gateway.untilLogged('"added":["vllm-0"]');
  expect(await turnsOf(gateway, 1)).toEqual(['vllm-0']);
});

test.each(['', 'vllm-0', 'vllm-**', 'vl*lm', 'a,,b', 'a b'])(
  'a drain token without proper names (%j) is refused',
  async (scope) => {
    const text = scope === '' ? TOKEN : `${scope}: ${TOKEN}`;
    const reading = readAdminTokens({ SVC_DRAIN_TOKEN: scope === 'vllm-0' ? 'vllm-0' : text });
    await expect(reading).rejects.toThrow('SVC_DRAIN_TOKEN must name its replicas before the token');
  },
);
