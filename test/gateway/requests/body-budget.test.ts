import { expect, test } from 'vitest';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const CHAT = '/v1/chat/completions';
const LARGE = JSON.stringify({ model: 'large', pad: 'x'.repeat(1024 * 1024) });

test.for([1, 2])(
  'bodies that a silent replica has read take no room from others, with %i workers',
  async (workers) => {
    await using silent = await startFakeReplica({ name: 'silent', script: hang });
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ ...silent, models: ['large'] }, replica],
      config: { gateway: { workers }, limits: { body: '2MiB', buffered: '4MiB' } },
    });
    using opened = new DisposableStack();

    for (let count = 1; count <= 16; count++) {
      const client = opened.use(await RawConnection.open(gateway.url));
      client.write(postBytes(CHAT, LARGE));
      await Promise.race([silent.untilRequests(count), gateway.waitForRecords(1)]);
      expect(gateway.records).toEqual([]);
      expect((await silent.requests.at(-1)?.body)?.length).toBe(LARGE.length);
    }

    for (let count = 0; count < 4; count++) {
      const response = await exchangeRaw(gateway.url, postBytes(CHAT, JSON.stringify({ model: 'm' })));
      expect(response.status).toBe(200);
    }
    expect(gateway.records.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
    expect((await gateway.replicas())[0]).toMatchObject({ name: 'silent', inflight: 16 });
  },
);

test('bodies that wait for a replica keep their room', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, max_inflight: 1 }],
    config: { limits: { body: '10KiB', buffered: '25KiB' } },
  });
  using opened = new DisposableStack();
  const body = JSON.stringify({ model: 'm', pad: 'x'.repeat(5_000) });
  const send = async () => {
    opened.use(await RawConnection.open(gateway.url)).write(postBytes(CHAT, body));
  };
  await send();
  await (await replica.nextRequest()).body;

  for (let count = 0; count < 20; count++) await send();
  const refused = await gateway.waitForRecords(15);

  // Five of them wait, or four if the first has not given its room back yet.
  expect(refused.every(({ error_type }) => error_type === 'overloaded')).toBe(true);
  expect(refused.length).toBeLessThanOrEqual(16);
});
