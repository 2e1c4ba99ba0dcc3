import { HttpResponse, http, passthrough } from 'msw';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { COMPLETION, startFakeReplica } from '#testkit/fake-replica.ts';
import { interceptNetwork } from '#testkit/servers/network.ts';
import { startGateway } from '#testkit/start-gateway.ts';

describe('at the edge of the network', () => {
  test('a replica by its name is reached like the others', async () => {
    await using _ = await interceptNetwork(
      http.post('http://gpu-node-1.example:8000/v1/chat/completions', () => HttpResponse.json(COMPLETION)),
    );
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: 'http://gpu-node-1.example:8000' }],
    });

    expect(await (await gateway.chat()).json()).toEqual(COMPLETION);
    expect(await gateway.nextRecord()).toMatchObject({ replica: 'a', status: 200, prompt_tokens: 11 });
  });

  test('a network that fails under a replica is an error of the gateway, and a record', async () => {
    await using _ = await interceptNetwork(
      http.post('http://gpu-node-1.example:8000/v1/chat/completions', () => HttpResponse.error()),
    );
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: 'http://gpu-node-1.example:8000' }],
    });

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({ status: 502, attempts: 1, replica: 'a' });
  });

  test('a network that fails under the collector costs no request anything, and no record', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    let failures = 3;
    await using _ = await interceptNetwork(
      http.post(`${collector.url}/v1/traces`, () => (failures-- > 0 ? HttpResponse.error() : passthrough())),
    );
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      config: { export: { retry: { initial: '1ms', max: '2ms' } } },
    });

    for (let i = 0; i < 5; i++) expect((await gateway.chat()).status).toBe(200);
    await collector.waitFor(({ spans }) => spans.length === 5);

    await gateway.close();
    const ids = collector.spans.map((span) => span.attributes['gateway.request_id']);
    expect(ids).toEqual(gateway.records.map((record) => record.request_id));
  });
});
