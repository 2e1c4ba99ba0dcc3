import { createServer, type IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type FakeReplica, partial, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection, toChunks } from '#testkit/raw-http.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const IMAGES = '/v1/images/generations';
const PASS = [`POST ${IMAGES}`];
const IMAGES_POST = `POST ${IMAGES} HTTP/1.1\r\nHost: g\r\n`;
const KIB = 1024;
/** More than the buffers of two sockets hold. */
const HUGE = Buffer.alloc(24 * 1024 * KIB);

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica({ name: 'a' });
  gateway = await startGateway({ replicas: [replica], config: { pass: PASS, limits: { body: '256KiB' } } });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

describe('a request of pass that does not end well', () => {
  test.each([
    ['with a length', `Content-Length: ${257 * KIB}\r\n\r\n`],
    [
      'in chunks',
      `Transfer-Encoding: chunked\r\n\r\n${(300 * KIB).toString(16)}\r\n${'x'.repeat(300 * KIB)}`,
    ],
  ])('is 413 if its body is larger than limits.body, %s', async (_, rest) => {
    const response = await exchangeRaw(gateway.url, `${IMAGES_POST}${rest}`);
    expect(response.status).toBe(413);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'request_too_large' } });
    if (rest.startsWith('T')) await (await replica.nextRequest()).untilAborted();
  });

  test.each([
    ['with a length', (body: Buffer) => [`Content-Length: ${body.length}\r\n\r\n`, body]],
    ['in chunks', (body: Buffer) => ['Transfer-Encoding: chunked\r\n\r\n', ...toChunks(body, () => 50_000)]],
  ] as const)('is served if its body is as large as limits.body, %s', async (_, toRest) => {
    const body = Buffer.alloc(256 * KIB, 'x');
    using client = await RawConnection.open(gateway.url);
    for (const piece of [IMAGES_POST, ...toRest(body)]) client.write(piece);
    expect((await client.readResponse()).status).toBe(200);
    expect((await (await replica.nextRequest()).body).equals(body)).toBe(true);
  });

  test('is 408 if its body stops coming, and the replica is let go', async () => {
    await using own = await startFakeReplica();
    const timeouts = { client_body: '100ms' };
    await using hasty = await startGateway({ replicas: [own], config: { pass: PASS, timeouts } });
    const response = await exchangeRaw(hasty.url, `${IMAGES_POST}Content-Length: ${80 * KIB}\r\n\r\nx`);
    expect(response.status).toBe(408);
    await (await own.nextRequest()).untilAborted();
  });

  test('is 408 also if the replica was slow at first and has taken all that came', async () => {
    const asked = Promise.withResolvers<IncomingMessage>();
    const server = createServer((request, response) => {
      if (request.url === IMAGES) asked.resolve(request);
      else response.end();
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    onTestFinished(() => closeServer(server));
    const config = { pass: PASS, timeouts: { client_body: '2s' }, limits: { body: '64MiB' } };
    await using own = await startGateway({ replicas: [{ name: 'slow', url }], config });
    using client = await RawConnection.open(own.url);
    client.write(`${IMAGES_POST}Content-Length: ${HUGE.length + 1}\r\n\r\n`);
    client.write(HUGE);
    const request = await asked.promise;
    // In these turns the gateway fills the buffers of the connection, and stops reading.
    for (let turn = 0; turn < 1000; turn++) await setImmediate();
    request.resume();
    expect((await client.readResponse()).status).toBe(408);
  });

  test('is 400 if its chunks are malformed, and the replica is let go', async () => {
    const response = await exchangeRaw(
      gateway.url,
      `${IMAGES_POST}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\nhello\r\n`,
    );
    expect(response.status).toBe(400);
    await (await replica.nextRequest()).untilAborted();
  });

  test('is 502 at once if it is half sent when its connection is reset, which is never a reused one', async () => {
    await using own = await startFakeReplica();
    await using other = await startGateway({ replicas: [own], config: { pass: PASS } });
    expect((await other.post(IMAGES, '{}')).status).toBe(200);
    own.answerOnce(({ reset }) => reset());
    const response = await exchangeRaw(other.url, `${IMAGES_POST}Content-Length: ${80 * KIB}\r\n\r\nx`);
    expect(response.status).toBe(502);
    expect(own.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 2]);
  });

  test('is cancelled at the replica when the client leaves in the middle of its body', async () => {
    const client = await RawConnection.open(gateway.url);
    client.write(`${IMAGES_POST}Content-Length: ${80 * KIB}\r\n\r\nx`);
    const received = await replica.nextRequest();
    client[Symbol.dispose]();
    await received.untilAborted();
  });

  test('is 502 when the replica breaks off in the middle of its body', async () => {
    replica.answerOnce(({ reset }) => reset());
    using client = await RawConnection.open(gateway.url);
    client.write(`${IMAGES_POST}Content-Length: ${80 * KIB}\r\n\r\nx`);
    const response = await client.readResponse();
    expect(response.status).toBe(502);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'upstream_failed' } });
    await replica.nextRequest();
  });

  test('gets the answer that comes before the end of its body, and a closed connection', async () => {
    replica.answerOnce(async ({ head, end }) => {
      await head(413, ['Content-Type', 'application/json']);
      end('{"error":"too much"}');
    });
    using client = await RawConnection.open(gateway.url);
    client.write(`${IMAGES_POST}Content-Length: ${80 * KIB}\r\n\r\nx`);
    const response = await client.readResponse();
    expect(response.status).toBe(413);
    expect(response.header('connection')).toEqual(['close']);
    expect(JSON.parse(response.body.toString())).toEqual({ error: 'too much' });
    await (await replica.nextRequest()).connection.untilClosed();
  });

  test('has a broken connection when the replica breaks off in the middle of the answer', async () => {
    replica.answerOnce(partial('image/png', ['half'], 'reset', ['Content-Length', '10']));
    const response = await exchangeRaw(gateway.url, postBytes(IMAGES, '{}'));
    expect(response.isComplete).toBe(false);
    await replica.nextRequest();
    expect(await gateway.stats()).toMatchObject({ recorded: 0 });
  });
});
