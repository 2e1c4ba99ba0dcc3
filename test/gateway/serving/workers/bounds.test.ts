import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { balanceOf, chatAtOnce, startWorkers } from './start-workers.ts';

describe('bounds apply to all workers together', () => {
  test('of the queue, while the collector is down', async () => {
    await using collector = await startFakeCollector();
    const { url } = collector;
    await collector.close();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(3, {
      replicas: [replica],
      collector: { url },
      config: { export: { queue_size: 5, batch_size: 5 }, shutdown: { flush: '1ms' } },
    });
    const sending = Promise.all(chatAtOnce(gateway, 60));
    let isSending = true;
    const watching = (async () => {
      while (isSending) {
        const { begun, accounted, queued } = await balanceOf(gateway);
        expect(begun).toBe(accounted);
        expect(queued).toBeLessThanOrEqual(5);
      }
    })();
    for (const answer of await sending) await answer?.text();
    await gateway.waitForRecords(60);
    isSending = false;
    await watching;

    const { recorded, queued, dropped } = await gateway.stats();
    expect({ recorded, queued, dropped }).toEqual({ recorded: 60, queued: 5, dropped: 55 });
    await gateway.untilLogged('records_dropped');
    expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  });

  test('of client connections', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { limits: { connections: 5 } },
    });
    using opened = new DisposableStack();
    const statuses: number[] = [];
    for (let count = 0; count < 20; count++) {
      const connection = opened.use(await RawConnection.open(gateway.url));
      connection.write('GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n');
      statuses.push((await connection.readResponse()).status);
    }

    expect(statuses).toEqual([...Array(5).fill(200), ...Array(15).fill(0)]);
  });

  test('of request bodies in memory', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, {
      replicas: [{ name: 'a', url: replica.url, max_inflight: 1 }],
      config: { limits: { body: '10KiB', buffered: '25KiB' } },
    });
    using opened = new DisposableStack();
    const body = JSON.stringify({ model: 'm', pad: 'x'.repeat(5_000) });
    const send = async () => {
      opened.use(await RawConnection.open(gateway.url)).write(postBytes('/v1/chat/completions', body));
    };
    // A body that a replica has read takes no memory; a body that waits does.
    await send();
    await (await replica.nextRequest()).body;
    for (let count = 0; count < 20; count++) await send();

    // Five wait, or four if the first has not released its memory yet.
    const refused = await gateway.waitForRecords(15);
    expect(refused.length).toBeLessThanOrEqual(16);
    expect(refused.every(({ error_type }) => error_type === 'overloaded')).toBe(true);
    expect(replica.requests).toHaveLength(1);
  });
});
