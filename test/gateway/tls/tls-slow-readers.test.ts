import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority, type TestAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** Long enough for all threads of a busy machine to get a turn within it. */
const IDLE_MS = 3_000;
const CHUNK = Buffer.from(`data: ${'x'.repeat(64 * 1024)}\n\n`);
const CHUNKS = 400;
const CHAT = postBytes('/v1/chat/completions', '{"model":"m","messages":[],"stream":true}', [
  'Content-Type: application/json',
]);

let authority: TestAuthority;
let replica: FakeReplica;
let gateway: StartedGateway;
let writtenBytes = 0;

beforeAll(async () => {
  [authority, replica] = await Promise.all([createAuthority(), startFakeReplica()]);
  const { certPath: cert, keyPath: key } = await authority.issue('server');
  gateway = await startGateway({
    replicas: [replica],
    config: { gateway: { tls: { cert, key } }, timeouts: { idle: `${IDLE_MS}ms` } },
  });
  replica.answer(async ({ request, head, write, end }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    writtenBytes = 0;
    for (let count = 0; count < CHUNKS && !request.isAborted; count++) {
      await write(CHUNK);
      writtenBytes += CHUNK.length;
      await new Promise((resolve) => setImmediate(resolve)); // sees the connection close
    }
    end();
  });
});

afterAll(async () => {
  await Promise.all([gateway, authority, replica].map((each) => each[Symbol.asyncDispose]()));
});

const open = () => RawConnection.open(gateway.url, { ca: authority.ca.cert });

test('a client that reads nothing over TLS holds the replica up, and is cut after timeouts.idle', async () => {
  using client = await open();
  client.socket.pause();
  client.write(CHAT);
  expect(await gateway.nextRecord()).toMatchObject({ status: 200, error_type: 'client_closed' });
  expect(writtenBytes).toBeLessThan((CHUNKS * CHUNK.length) / 2);
});

test('a client that reads slowly over TLS, for longer than timeouts.idle, gets every byte', async () => {
  using client = await open();
  const { socket } = client;
  const startedMs = performance.now();
  const isSlow = () => performance.now() - startedMs < 2 * IDLE_MS;
  socket.on('data', () => {
    if (!isSlow()) return;
    socket.pause();
    setTimeout(() => socket.resume(), 4); // the time that such a client takes, far below timeouts.idle
  });
  client.write(CHAT);
  const { body, isComplete } = await client.readResponse();
  expect(isComplete).toBe(true);
  expect(body.length).toBe(CHUNKS * CHUNK.length);
  expect(performance.now() - startedMs).toBeGreaterThan(IDLE_MS);
  expect(await gateway.nextRecord()).toMatchObject({ status: 200 });
});
