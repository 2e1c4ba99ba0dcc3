import { describe, expect, test } from 'vitest';
import { blockThread } from '#testkit/block-thread.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const CHAT = postBytes('/v1/chat/completions', '{"model":"m"}');
const HALF_HEAD = 'POST /v1/chat/completions HTTP/1.1\r\nHost: ';

/** Resolves when the time for a head has passed twice: two heads that never end, one after the other, got their 408. */
async function untilHeadsTimedOut(url: string): Promise<void> {
  for (let i = 0; i < 2; i++) {
    using slow = await RawConnection.open(url);
    slow.write(HALF_HEAD);
    expect((await slow.readResponse()).status).toBe(408);
  }
}

describe('a connection that is opened early', () => {
  test('and used later gets its answer', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '100ms' } },
    });
    using early = await RawConnection.open(gateway.url);

    await untilHeadsTimedOut(gateway.url);
    early.write(CHAT);
    const response = await early.readResponse();

    expect(response.status).toBe(200);
    expect(response.header('x-request-id')).toHaveLength(1);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200 });
  });

  test('and kept open after its first request waits as long for the second', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '100ms' } },
    });
    using client = await RawConnection.open(gateway.url);
    client.write(CHAT);
    expect((await client.readResponse()).status).toBe(200);

    await untilHeadsTimedOut(gateway.url);
    client.write(CHAT);

    expect((await client.readResponse()).status).toBe(200);
  });

  test.for(['100ms', '15s'])(
    'and never used is closed without a word (client_headers %s)',
    async (headers) => {
      await using replica = await startFakeReplica();
      await using gateway = await startGateway({
        replicas: [replica],
        config: { timeouts: { client_headers: headers, keep_alive: '300ms' } },
      });
      using client = await RawConnection.open(gateway.url);

      expect((await client.readToClose()).toString('latin1')).toBe('');
      await gateway.close();
      expect(gateway.records).toEqual([]);
    },
  );

  test('and used once is closed without a word, too', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '100ms', keep_alive: '300ms' } },
    });
    using client = await RawConnection.open(gateway.url);
    client.write(CHAT);
    await client.readResponse();

    expect((await client.readToClose()).toString('latin1')).toBe('');
  });
});

describe('a head that is in the socket when its time is up is answered', () => {
  const config = { timeouts: { client_headers: '1s', keep_alive: '1s' } };
  const STALL_MS = 1_500;

  test('where it is the first of its connection', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config });
    using client = await RawConnection.open(gateway.url);

    client.write(CHAT);
    blockThread(STALL_MS);
    const response = await client.readResponse();

    expect(response.status).toBe(200);
    expect(response.header('x-request-id')).toHaveLength(1);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200 });
  });

  test('where its first half has been read', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config });
    using client = await RawConnection.open(gateway.url);
    client.write(CHAT.subarray(0, 20));
    // A whole exchange later the gateway has read it.
    await (await fetch(`${gateway.url}/healthz`)).text();

    client.write(CHAT.subarray(20));
    blockThread(STALL_MS);
    const response = await client.readResponse();

    expect(response.status).toBe(200);
    expect(response.header('x-request-id')).toHaveLength(1);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200 });
  });

  test('where it follows another on its connection', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config });
    using client = await RawConnection.open(gateway.url);
    client.write(CHAT);
    await client.readResponse();

    client.write(CHAT);
    blockThread(STALL_MS);

    expect((await client.readResponse()).status).toBe(200);
  });
});

describe('a head that does not end', () => {
  test.for([
    ['stays away', false],
    ['comes byte by byte', true],
  ] as const)('%s: it gets a 408, counted from its first byte', async ([, doesTrickle]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '300ms', keep_alive: '1h' } },
    });
    using client = await RawConnection.open(gateway.url);

    client.write(HALF_HEAD);
    if (doesTrickle) {
      const timer = setInterval(() => client.write('g'), 20);
      client.socket.once('close', () => clearInterval(timer));
    }
    const response = await client.readResponse();

    expect(response.status).toBe(408);
    expect(response.header('connection')).toEqual(['close']);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'request_timeout' } });
    await gateway.close();
    expect(gateway.records).toEqual([]);
  });

  test('behind a request that was answered: it gets a 408 as well', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '300ms', keep_alive: '1h' } },
    });
    using client = await RawConnection.open(gateway.url);
    client.write(CHAT);
    expect((await client.readResponse()).status).toBe(200);

    client.write(HALF_HEAD);

    expect((await client.readResponse()).status).toBe(408);
    await client.readToClose();
  });
});
