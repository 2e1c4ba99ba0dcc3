import { expect, test } from 'vitest';
import { blockThread } from '#testkit/block-thread.ts';
import { answerJson, chatChunk, DONE, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const PLAIN = postBytes('/v1/chat/completions', '{"model":"m"}');
const STREAMED = postBytes('/v1/chat/completions', '{"model":"m","stream":true}');
const BUSY_MS = 200;

/** Calls once when the bytes received since end with a text, in the very event that brings them. */
function onEnding(client: RawConnection, text: string, run: () => void): void {
  let tail = '';
  client.socket.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - text.length))).slice(-text.length);
    if (tail === text) run();
  });
}

test.for([
  ['a plain answer', PLAIN, answerJson('{"a":"end"}'), '"end"}'],
  ['a long answer', PLAIN, answerJson({ pad: 'x'.repeat(8_000_000), a: 'end' }), '"end"}'],
] as const)(
  'e2e_ms of %s is over when the client has it, whatever the gateway does then',
  async ([, request, script, end]) => {
    await using replica = await startFakeReplica({ script });
    await using gateway = await startGateway({ replicas: [replica] });
    using opened = new DisposableStack();
    const clients: RawConnection[] = [];
    for (let i = 0; i < 8; i++) clients.push(opened.use(await RawConnection.open(gateway.url)));

    const seenMs = new Map<string, number>();
    await Promise.all(
      clients.map(async (client) => {
        const sentMs = performance.now();
        let gotMs = 0;
        onEnding(client, end, () => {
          gotMs = performance.now() - sentMs;
          blockThread(BUSY_MS);
        });
        client.write(request);
        const response = await client.readResponse();
        seenMs.set(response.header('x-request-id')[0] ?? '', gotMs);
      }),
    );

    for (const { request_id, e2e_ms } of await gateway.waitForRecords(clients.length)) {
      expect(e2e_ms).toBeLessThanOrEqual(seenMs.get(request_id) ?? 0);
    }
  },
);

test('the times of a stream lie between what the replica and what the client saw', async () => {
  const taken = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const sentMs: number[] = [];
  await using replica = await startFakeReplica({
    script: async ({ request, head, write, end }) => {
      await request.body;
      sentMs.push(performance.now());
      await head(200, ['Content-Type', 'text/event-stream']);
      for (const index of [0, 1] as const) {
        sentMs.push(performance.now());
        await write(chatChunk(`token ${index}`));
        await taken[index].promise;
      }
      sentMs.push(performance.now());
      end(chatChunk('', 'stop') + DONE);
    },
  });
  await using gateway = await startGateway({ replicas: [replica] });
  using client = await RawConnection.open(gateway.url);
  const gotMs: number[] = [];
  const startedMs = performance.now();
  client.write(STREAMED);
  await client.readHead();
  for (const { resolve } of taken) {
    await client.readPiece();
    gotMs.push(performance.now());
    blockThread(BUSY_MS);
    resolve();
  }
  while ((await client.readPiece()) !== null);
  const endedMs = performance.now();
  blockThread(BUSY_MS);

  const { ttft_ms = 0, gap_p50_ms = 0, e2e_ms } = await gateway.nextRecord();

  const [askedMs = 0, firstMs = 0, secondMs = 0, lastMs = 0] = sentMs;
  const [firstGotMs = 0, secondGotMs = 0] = gotMs;
  expect(ttft_ms).toBeGreaterThanOrEqual(firstMs - askedMs);
  expect(ttft_ms).toBeLessThanOrEqual(firstGotMs - startedMs);
  expect(gap_p50_ms).toBeGreaterThanOrEqual(secondMs - firstGotMs);
  expect(gap_p50_ms).toBeLessThanOrEqual(secondGotMs - firstMs);
  expect(e2e_ms).toBeGreaterThanOrEqual(lastMs - askedMs);
  expect(e2e_ms).toBeLessThanOrEqual(endedMs - startedMs);
});

test('e2e_ms of an answer that the client reads late lasts until the system has taken the rest', async () => {
  const length = 16_000_000;
  await using replica = await startFakeReplica({ script: answerJson({ pad: 'x'.repeat(length) }) });
  await using gateway = await startGateway({ replicas: [replica] });
  using client = await RawConnection.open(gateway.url);
  client.socket.pause();
  client.write(PLAIN);
  const received = await replica.nextRequest();
  await received.body;
  const startedMs = performance.now();
  // While it does not read, a few exchanges of others pass.
  for (let i = 0; i < 5; i++) await (await fetch(`${gateway.url}/healthz`)).text();
  const resumedMs = performance.now();

  client.socket.resume();
  const response = await client.readResponse();

  expect(response.isComplete).toBe(true);
  const { e2e_ms } = await gateway.nextRecord();
  expect(e2e_ms).toBeGreaterThanOrEqual(resumedMs - startedMs);
});
