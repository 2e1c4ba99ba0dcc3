import { test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { FAULTS, startFaultyServer } from '#testkit/servers/faulty-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

test.concurrent.for(FAULTS)(
  'a replica that $name is asked again, and known when it is well',
  async (fault, { expect }) => {
    await using server = await startFaultyServer(fault, (request, response) => {
      const isList = request.url === '/v1/models';
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(isList ? '{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}' : '{}');
    });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: server.url, models: 'auto', engine: 'auto' }],
      config: {
        discovery: { models_interval: '100ms' },
        health: { passive: false, frozen_after: 'off', interval: '60ms', timeout: '100ms', failures: 1 },
      },
    });
    await gateway.untilLogged('replica failing: tried last');
    server.mend();
    await gateway.untilLogged('replica ok: no longer tried last');
    await expect
      .poll(() => gateway.replicas())
      .toMatchObject([{ models: ['m'], engine: 'vllm', health: 'ok' }]);
    await server.untilLetGo();
  },
);

test('what a replica announces before its list is not its answer', async ({ expect }) => {
  await using replica = await startFakeReplica();
  replica.answerProbes(async ({ raw }) => {
    const list = '{"data":[{"id":"m2"}]}';
    await raw('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n');
    await raw(`HTTP/1.1 200 OK\r\nContent-Length: ${list.length}\r\n\r\n${list}`);
  });
  await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, models: 'auto' }] });
  expect(await gateway.replicas()).toMatchObject([{ models: ['m2'] }]);
});
