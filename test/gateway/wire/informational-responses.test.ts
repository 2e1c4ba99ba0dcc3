import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { answerRaw, jsonBytes, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const CHAT = postBytes('/v1/chat/completions', '{"model":"m"}');
const MODELS = 'GET /v1/models HTTP/1.1\r\nHost: g\r\n\r\n';

/** So many would be a flood; the buffers on the way hold fewer. */
const FLOOD_COUNT = 1_000_000;

const INFORMATIONAL = [
  ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['103', 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'],
] as const;

describe('informational responses of a replica', () => {
  test.for(INFORMATIONAL)('without end (%s) end the attempt after a bounded number', async ([, bytes]) => {
    let sentCount = 0;
    await using replica = await startFakeReplica({
      script: async ({ request: { body, connection }, raw }) => {
        await body;
        while (!connection.isClosed && sentCount < FLOOD_COUNT) {
          await raw(bytes.repeat(100));
          sentCount += 100;
          await setImmediate();
        }
      },
    });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { first_byte: '20s' } },
    });

    const response = await exchangeRaw(gateway.url, CHAT);

    expect(response.status).toBe(502);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'upstream_failed' } });
    expect(await gateway.nextRecord()).toMatchObject({
      status: 502,
      error_type: 'upstream_failed',
      replica: 'a',
      attempts: 1,
    });
    await replica.requests[0]?.connection.untilClosed();
    // What the buffers on the way hold is a multiple of what the gateway has read.
    expect(sentCount).toBeLessThan(FLOOD_COUNT);
    sentCount = 0;
    expect((await exchangeRaw(gateway.url, MODELS)).status).toBe(502);
  });

  test.for(INFORMATIONAL)('one by one (%s), before an answer, change nothing', async ([, bytes]) => {
    await using replica = await startFakeReplica({
      script: async ({ request, raw }) => {
        await request.body;
        for (let count = 0; count < 5; count++) await raw(bytes);
        await raw(jsonBytes({ a: 1 }));
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });

    for (const request of [CHAT, MODELS]) {
      const response = await exchangeRaw(gateway.url, request);
      expect(response.status).toBe(200);
      expect(response.body.toString()).toBe('{"a":1}');
      expect(response.header('link')).toEqual([]);
    }
  });

  test('that switch the protocol, which nobody asked for, are a 502', async () => {
    await using replica = await startFakeReplica({
      script: answerRaw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, CHAT);

    expect(response.status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({ status: 502, error_type: 'upstream_failed' });
    await replica.requests[0]?.connection.untilClosed();
  });
});
