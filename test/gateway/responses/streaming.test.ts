import { describe, expect, test } from 'vitest';
import {
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  type ReplicaExchange,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const STREAMED = '{"model":"m","stream":true}';
/** The client asks for usage itself, so that nothing is injected and nothing held. */
const STREAMED_WITH_USAGE = '{"model":"m","stream":true,"stream_options":{"include_usage":true}}';

/** Opens a stream: the client has the head, and the replica waits for what the test writes. */
async function openStream(
  gateway: StartedGateway,
  replica: FakeReplica,
  body: string,
): Promise<{ client: RawConnection; upstream: ReplicaExchange }> {
  const { promise, resolve } = Promise.withResolvers<ReplicaExchange>();
  replica.answerOnce(async (exchange) => {
    await exchange.request.body;
    await exchange.head(200, ['Content-Type', 'text/event-stream']);
    resolve(exchange);
  });
  const client = await RawConnection.open(gateway.url);
  client.write(postBytes('/v1/chat/completions', body));
  const upstream = await promise;
  expect((await client.readHead()).status).toBe(200);
  return { client, upstream };
}

describe('where nothing is injected', () => {
  test.for([
    ['whole events', [chatChunk('one'), chatChunk('two'), usageChunk(1, 2), DONE]],
    ['half an event', [chatChunk('one').slice(0, 20), chatChunk('one').slice(20), DONE]],
    ['a byte at a time', [...'data: {"x":1}\r\n\r\n', ...DONE]],
    ['several events in one', [chatChunk('one') + chatChunk('two'), usageChunk(1, 2) + DONE]],
    ['comments and blank lines', [':\n\n', ': ping\r\n\r\n', '\n\n\n', chatChunk('one'), DONE]],
    ['CR line ends', ['data: {"choices":[]}\r\r', 'data: [DONE]\r\r']],
    ['other fields', ['event: message\nid: 1\nretry: 5\ndata: {}\n\n', DONE]],
    ['no blank line at the end', ['data: {"x":1}\n\n', 'data: [DONE]']],
    [
      'characters cut in two',
      [Buffer.from('data: "é😀"\n\n').subarray(0, 8), Buffer.from('data: "é😀"\n\n').subarray(8), DONE],
    ],
  ] as const)('every read goes out as it comes, one write each: %s', async ([, pieces]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { client, upstream } = await openStream(gateway, replica, STREAMED_WITH_USAGE);
    using _ = client;

    for (const piece of pieces) {
      await upstream.write(piece);
      expect(await client.readPiece()).toEqual(Buffer.from(piece));
    }
    upstream.end();

    expect(await client.readPiece()).toBeNull();
    expect((await gateway.nextRecord()).truncated).toBeUndefined();
  });

  test('the head goes out before the first byte of the body comes', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const { client, upstream } = await openStream(gateway, replica, STREAMED);
    using _ = client;

    upstream.end(DONE);
    expect(await client.readPiece()).toEqual(Buffer.from(DONE));
  });

  test('a response that is no event stream is relayed read by read as well', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { promise, resolve } = Promise.withResolvers<ReplicaExchange>();
    replica.answer(async (exchange) => {
      await exchange.request.body;
      await exchange.head(200, ['Content-Type', 'application/json']);
      resolve(exchange);
    });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', '{"model":"m"}'));
    const upstream = await promise;
    await client.readHead();

    for (const piece of ['{"usage":{"prompt_', 'tokens":7}', '}']) {
      await upstream.write(piece);
      expect((await client.readPiece())?.toString()).toBe(piece);
    }
    upstream.end();
    expect(await gateway.nextRecord()).toMatchObject({ prompt_tokens: 7, stream: false });
  });
});

describe('where usage is injected', () => {
  test('an event that needs no change goes out at once, and its parts one by one', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, engine: 'sglang' }],
    });
    const { client, upstream } = await openStream(gateway, replica, STREAMED);
    using _ = client;
    const event = chatChunk('a long answer of one event');
    const cut = event.indexOf('a long') + 3;

    await upstream.write(event.slice(0, cut));
    expect((await client.readPiece())?.toString()).toBe(event.slice(0, cut));
    await upstream.write(event.slice(cut));
    expect((await client.readPiece())?.toString()).toBe(event.slice(cut));
    upstream.end(DONE);
    expect((await client.readPiece())?.toString()).toBe(DONE);
  });

  test('the usage chunk is withheld, wherever the reads are cut', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { client, upstream } = await openStream(gateway, replica, STREAMED);
    using _ = client;
    const usage = usageChunk(11, 2);

    await upstream.write(chatChunk('one') + usage.slice(0, 30));
    await upstream.write(usage.slice(30, 31));
    await upstream.write(usage.slice(31));
    await upstream.write(DONE);
    upstream.end();

    const pieces: Buffer[] = [];
    for (let piece = await client.readPiece(); piece !== null; piece = await client.readPiece())
      pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe(chatChunk('one') + DONE);
    expect(await gateway.nextRecord()).toMatchObject({ prompt_tokens: 11, completion_tokens: 2 });
  });

  test('an event longer than limits.event is relayed as it is, unread', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: { limits: { event: '4KiB' } } });
    const long = chatChunk('x'.repeat(10_000));
    replica.answer(answerStream([long, chatChunk('short'), usageChunk(1, 2), DONE]));

    const response = await gateway.chat({ stream: true });

    expect(await response.text()).toBe(long + chatChunk('short') + DONE);
    expect(await gateway.nextRecord()).toMatchObject({ prompt_tokens: 1, completion_tokens: 2 });
  });
});

describe('back-pressure', () => {
  test('a client that does not read stops the replica after few bytes', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const chunk = Buffer.from(`data: ${'x'.repeat(64 * 1024)}\n\n`);
    const total = 200_000_000;
    let writtenBytes = 0;
    const stalled = Promise.withResolvers<void>();
    replica.answer(async ({ request, head, write, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      while (writtenBytes < total) {
        const written = write(chunk);
        // A write that did not leave within many turns of the event loop is held up by the gateway.
        if (!(await isSettledWithin(written, 2_000))) stalled.resolve();
        await written;
        writtenBytes += chunk.length;
      }
      end();
    });
    using client = await RawConnection.open(gateway.url);
    client.socket.pause();
    client.write(postBytes('/v1/chat/completions', STREAMED_WITH_USAGE));

    await stalled.promise;

    expect(writtenBytes).toBeLessThan(20_000_000);
    // It is not over: a client that begins to read gets the rest, and one that leaves ends it.
    client[Symbol.dispose]();
    expect(await gateway.nextRecord()).toMatchObject({
      status: 200,
      error_type: 'client_closed',
      truncated: true,
    });
    await (await replica.nextRequest()).untilAborted();
  });

  test('a client that reads again gets every byte', async () => {
    const body = Buffer.alloc(8_000_000, 'data: 0123456789\n\n');
    await using replica = await startFakeReplica({ script: answerStream([body]) });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.socket.pause();
    client.write(postBytes('/v1/chat/completions', STREAMED));
    await replica.nextRequest();
    client.socket.resume();

    const response = await client.readResponse();

    expect(response.isComplete).toBe(true);
    expect(response.body.equals(body)).toBe(true);
  });
});

/** Whether a promise settles within this many turns of the event loop. */
async function isSettledWithin(promise: Promise<unknown>, turns: number): Promise<boolean> {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < turns && !isSettled; turn++) await new Promise(setImmediate);
  return isSettled;
}
