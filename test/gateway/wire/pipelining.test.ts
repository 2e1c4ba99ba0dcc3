import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { answerJson, hang, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n';

/** A chat request that tells its number. */
const numbered = (number: number) =>
  postBytes('/v1/chat/completions', JSON.stringify({ model: 'm', user: String(number) }));

/** Whatever bounds a client that neither reads nor leaves is short. */
const SHORT = { idle: '300ms', keep_alive: '300ms', client_headers: '300ms', client_body: '300ms' };

/** Answers with what the request says, after a few turns of the event loop, and tells how many it does at once. */
function countAtOnce(): { readonly script: Script; readonly most: () => number } {
  let count = 0;
  let most = 0;
  const script: Script = async (exchange) => {
    most = Math.max(most, ++count);
    const { user } = JSON.parse((await exchange.request.body).toString()) as { user: string };
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    count--;
    await answerJson({ user })(exchange);
  };
  return { script, most: () => most };
}

test('of the requests that are pipelined on a connection one at a time goes upstream, and all are answered', async () => {
  const { script, most } = countAtOnce();
  await using replica = await startFakeReplica({ script });
  await using gateway = await startGateway({ replicas: [replica] });
  using client = await RawConnection.open(gateway.url);

  client.write(Buffer.concat(Array.from({ length: 500 }, (_, number) => numbered(number))));
  const answered: string[] = [];
  for (let count = 0; count < 500; count++) {
    const response = await client.readResponse();
    expect(response.status).toBe(200);
    answered.push((JSON.parse(response.body.toString()) as { user: string }).user);
  }

  expect(answered).toEqual(Array.from({ length: 500 }, (_, number) => String(number)));
  expect(most()).toBe(1);
  expect(replica.connections.length).toBeLessThan(10);
  const records = await gateway.waitForRecords(500);
  expect(records.every(({ status }) => status === 200)).toBe(true);
});

test('of requests without a body more than fits into the input of a connection are all answered', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using client = await RawConnection.open(gateway.url);
  const count = 4_000;
  const models = 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX-Padding: 0123456789\r\n\r\n';

  // Something is in flight upstream when most of the input comes.
  client.write(models + HEALTH.repeat(count) + models);
  const statuses = new Map<number, number>();
  for (let read = 0; read < count + 2; read++) {
    const { status } = await client.readResponse();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }

  expect([...statuses]).toEqual([[200, count + 2]]);
});

test('requests that are pipelined on two connections go upstream side by side', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({ replicas: [replica] });
  using one = await RawConnection.open(gateway.url);
  using two = await RawConnection.open(gateway.url);

  one.write(Buffer.concat([numbered(1), numbered(2)]));
  two.write(Buffer.concat([numbered(3), numbered(4)]));
  await replica.untilRequests(2);
  for (let i = 0; i < 3; i++) expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);

  const bodies = await Promise.all(replica.requests.map(({ body }) => body));
  expect(bodies.map((body) => JSON.parse(body.toString()).user).sort()).toEqual(['1', '3']);
});

test('a request that waits behind another is cut with its connection, and was never upstream', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({ replicas: [replica] });
  using client = await RawConnection.open(gateway.url);
  client.write(Buffer.concat([numbered(1), numbered(2), numbered(3)]));
  const received = await replica.nextRequest();

  client[Symbol.dispose]();

  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 499, error_type: 'client_closed' });
  await gateway.close();
  expect(replica.requests).toHaveLength(1);
});

/** A client that pipelines whole chunks of requests as fast as they are taken, and reads nothing. */
async function startDeafClient(url: string, chunk: Uint8Array, chunkCount: number) {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  let takenCount = 0;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  const writeOn = (error?: Error | null) => {
    if (error || takenCount === chunkCount || socket.destroyed) return;
    socket.write(chunk, (failure) => {
      if (!failure) takenCount++;
      writeOn(failure);
    });
  };
  writeOn();
  return { closed, takenBytes: () => takenCount * chunk.length };
}

test('a client that pipelines and never reads is not read any more, and closed', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { timeouts: SHORT } });
  const chunk = Buffer.from(HEALTH.repeat(1_500));

  const client = await startDeafClient(gateway.url, chunk, 1_000_000);
  await client.closed;

  // What the system's buffers of both sockets hold, and little more.
  expect(client.takenBytes()).toBeLessThan(16 * 1024 * 1024);
  expect((await gateway.chat()).status).toBe(200);
});

/** The first record that says this of how its request ended. */
async function nextRecordOf(
  gateway: StartedGateway,
  errorType: string,
): Promise<Readonly<RequestRecord> | undefined> {
  for (;;) {
    const record = await gateway.nextRecord();
    if (record.error_type === errorType) return record;
  }
}

test('answers that a client does not read hold up the requests that it pipelined behind them', async () => {
  await using replica = await startFakeReplica({ script: answerJson({ text: 'x'.repeat(512 * 1024) }) });
  await using gateway = await startGateway({ replicas: [replica], config: { timeouts: SHORT } });
  using client = await RawConnection.open(gateway.url);
  client.socket.pause();

  client.write(Buffer.concat(Array.from({ length: 200 }, (_, number) => numbered(number))));
  const gone = await nextRecordOf(gateway, 'client_closed');

  expect(gone).toMatchObject({ status: 200, truncated: true });
  // 100 MiB were asked for: what went upstream fits into the buffers on the way.
  expect(replica.requests.length).toBeLessThan(60);
  client.socket.resume();
  await client.readToClose();
});
