import { describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const NOWHERE = [{ name: 'a', url: 'http://127.0.0.1:9' }];
const LOOP_ERROR = {
  error: {
    message: 'The request has come back to this gateway: the url of one of its replicas leads back to it.',
    type: 'server_error',
    param: null,
    code: 'loop_detected',
  },
};

/** Lets a gateway, which listens on a free port, have this server as its only replica. */
async function pointTo(gateway: StartedGateway, url: string): Promise<void> {
  gateway.writeConfig({ replicas: [{ name: 'a', url }] });
  expect((await gateway.reload()).status).toBe(200);
}

const viaNames = (lines: readonly string[]) => lines.join(', ').match(/spangate-[0-9a-f]{16}/g) ?? [];

/** Sends a chat request with these field lines through a gateway to a replica, and returns its Via lines. */
async function viaAt(replica: FakeReplica, gateway: StartedGateway, fields: readonly string[] = []) {
  const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', '{"model":"m"}', fields));
  expect(response.status).toBe(200);
  for (;;) {
    const { url, header } = await replica.nextRequest();
    // A gateway's probe of another gateway reaches the replica too.
    if (url !== '/v1/models') return header('via');
  }
}

describe('a gateway that is its own replica', () => {
  test.each([1, 2])(
    'with %i workers refuses a request that comes back, and records that',
    async (workers) => {
      await using gateway = await startGateway({ replicas: NOWHERE, config: { gateway: { workers } } });
      await pointTo(gateway, gateway.url);

      const response = await gateway.chat();
      expect(response.status).toBe(508);
      expect(await response.json()).toEqual(LOOP_ERROR);
      const records = await gateway.waitForRecords(2);
      expect(records).toHaveLength(2);
      expect(records.map(({ status }) => status)).toEqual([508, 508]);
      expect(records.filter(({ error_type }) => error_type === 'loop_detected')).toHaveLength(1);
      expect(await gateway.untilLogged('loop refused')).toContain('"level":40');
    },
  );

  test('refuses a request for the list of models too', async () => {
    await using gateway = await startGateway({ replicas: NOWHERE });
    await pointTo(gateway, gateway.url);
    const response = await fetch(`${gateway.url}/v1/models`);
    expect(response.status).toBe(508);
    expect(await response.json()).toEqual(LOOP_ERROR);
  });

  test('keeps answering the rest', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: NOWHERE });
    gateway.writeConfig({
      replicas: [
        { name: 'loop', url: gateway.url, models: ['loop'] },
        { name: 'b', url: replica.url },
      ],
    });
    await gateway.reload();
    expect((await gateway.chat({ model: 'loop' })).status).toBe(508);
    expect((await gateway.chat()).status).toBe(200);
  });
});

describe('gateways in series', () => {
  test('serve a request, and each names itself once', async () => {
    await using replica = await startFakeReplica();
    await using last = await startGateway({ replicas: [replica] });
    await using first = await startGateway({ replicas: [{ name: 'gateway', url: last.url }] });
    const via = await viaAt(replica, first);
    expect(via).toEqual([expect.stringMatching(/^1\.1 spangate-\w{16}$/), expect.stringMatching(/^1\.1 /)]);
    expect(new Set(viaNames(via)).size).toBe(2);
  });

  test('that form a ring refuse a request', async () => {
    await using one = await startGateway({ replicas: NOWHERE });
    await using two = await startGateway({ replicas: [{ name: 'one', url: one.url }] });
    await pointTo(one, two.url);
    const response = await one.chat();
    expect(response.status).toBe(508);
    expect(await response.json()).toEqual(LOOP_ERROR);
  });
});

describe('the Via of a client', () => {
  test('passes unchanged, before that of the gateway', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const lines = await viaAt(replica, gateway, [
      'Via: 1.0 fred, 1.1 p.example.net (a, b)',
      'via:  2 spangate ',
    ]);
    expect(lines.slice(0, -1)).toEqual(['1.0 fred, 1.1 p.example.net (a, b)', '2 spangate']);
    expect(viaNames(lines.slice(-1))).toHaveLength(1);
  });

  test('cannot hide that a request has come back, with a Connection field', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const [own = ''] = await viaAt(replica, gateway);
    const fields = ['Connection: via', `Via: ${own}`];
    const response = await exchangeRaw(
      gateway.url,
      postBytes('/v1/chat/completions', '{"model":"m"}', fields),
    );
    expect(response.status).toBe(508);
    expect(viaNames(await viaAt(replica, gateway, ['Connection: via', 'Via: 1.1 x']))).toHaveLength(1);
  });

  test('of eight other gateways is that of a loop, of seven it is not', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const others = Array.from({ length: 8 }, (_, i) => `1.1 spangate-${'0'.repeat(15)}${i}`);
    expect(await viaAt(replica, gateway, [`Via: ${others.slice(1).join()}`])).toHaveLength(2);
    const response = await exchangeRaw(
      gateway.url,
      postBytes('/v1/chat/completions', '{"model":"m"}', [`Via: ${others.join()}`]),
    );
    expect(response.status).toBe(508);
  });
});
