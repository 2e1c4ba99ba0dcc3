import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection, toChunk } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const MIB = 1024 * 1024;

/** The time for a body is short; what comes after an answer has about five seconds at most. */
const CONFIG = { timeouts: { client_body: '300ms' }, limits: { body: '1MiB' } };

/** What the buffers of two sockets hold beside what the gateway reads. */
const BUFFERS_BYTES = 24 * MIB;

/** A request whose body nobody wants, and what it is answered with. */
const unwanted: readonly (readonly [requestLine: string, status: number])[] = [
  ['GET /healthz', 200],
  ['GET /v1/models', 200],
  ['GET /nowhere', 404],
  ['POST /nowhere', 404],
  ['PUT /v1/chat/completions', 404],
];

const framings: readonly (readonly [name: string, field: string, toBytes: (part: Buffer) => Buffer])[] = [
  ['a Content-Length', `Content-Length: ${1024 * MIB}`, (part) => part],
  ['chunks', 'Transfer-Encoding: chunked', toChunk],
];

const cases = unwanted.flatMap(([requestLine, status]) =>
  framings.map(([name, field, toBytes]) => ({ requestLine, status, name, field, toBytes })),
);

/** Writes a part again and again, each as soon as the one before is taken; tells how many bytes were. */
function writeEndlessly(socket: Socket, part: Buffer): () => number {
  let takenBytes = 0;
  const writeOn = () => {
    if (socket.destroyed || socket.writableEnded) return;
    socket.write(part, (error) => {
      if (error) return;
      takenBytes += part.length;
      setImmediate(writeOn);
    });
  };
  writeOn();
  return () => takenBytes;
}

/** Writes a part now and then for as long as the connection is there. */
function trickle(socket: Socket, part: Buffer): void {
  const timer = setInterval(() => socket.write(part), 100);
  socket.once('close', () => clearInterval(timer));
}

/** Resolves when the connection is gone on both sides. A client that writes notices it by its next bytes. */
function untilGone(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}

describe('a body that nobody wants', () => {
  // Each of them takes as long as the gateway lingers: side by side.
  test.concurrent.for(unwanted)(
    '%s: one that stays away or trickles holds its connection for a short time only',
    async ([requestLine, status]) => {
      await using replica = await startFakeReplica();
      await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
      const send = async (doesTrickle: boolean, [, field, toBytes]: (typeof framings)[number]) => {
        using client = await RawConnection.open(gateway.url);
        client.write(`${requestLine} HTTP/1.1\r\nHost: g\r\n${field}\r\n\r\n`);
        const part = toBytes(Buffer.from('x'));
        if (doesTrickle) trickle(client.socket, part);
        else client.write(part);
        const response = await client.readResponse();
        // What trickles is noticed to be unread by a reset; what stays away by the end.
        await (doesTrickle ? untilGone(client.socket) : client.readToClose());
        return [response.status, response.isComplete];
      };

      const answers = await Promise.all(
        framings.flatMap((framing) => [send(false, framing), send(true, framing)]),
      );

      expect(answers).toEqual(Array(4).fill([status, true]));
    },
  );

  test.for(cases)('$requestLine with $name without end is answered, and closed', async (one) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      // The time is long: it is the size that ends it.
      config: { ...CONFIG, timeouts: { client_body: '1h' } },
    });
    using client = await RawConnection.open(gateway.url);

    client.write(`${one.requestLine} HTTP/1.1\r\nHost: g\r\n${one.field}\r\n\r\n`);
    const takenBytes = writeEndlessly(client.socket, one.toBytes(Buffer.alloc(64 * 1024)));

    expect((await client.readResponse()).status).toBe(one.status);
    await untilGone(client.socket);
    expect(takenBytes()).toBeLessThan(BUFFERS_BYTES);
  });

  test.for(unwanted)('%s: a small one that came whole is no request of its own', async ([line, status]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);
    const body = 'GET /smuggled HTTP/1.1\r\nHost: g\r\n\r\n';

    client.write(`${line} HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const first = await client.readResponse();
    client.write(postBytes('/v1/chat/completions', '{"model":"m"}', ['Connection: close']));
    const second = await client.readResponse();

    expect([first.status, second.status]).toEqual([status, 200]);
    await client.readToClose();
  });
});

describe('a body over the limit', () => {
  const CHAT = 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n';
  const early = [
    ['by its Content-Length', `${CHAT}Content-Length: ${64 * MIB}\r\n\r\n`, (part: Buffer) => part],
    ['while it is read', `${CHAT}Transfer-Encoding: chunked\r\n\r\n`, toChunk],
  ] as const;

  test.for(early)('is refused %s, and the client reads so whole', async ([, head, toBytes]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);

    client.write(head);
    for (let count = 0; count < 24; count++) client.write(toBytes(Buffer.alloc(64 * 1024)));
    const response = await client.readResponse();

    expect(response.status).toBe(413);
    expect(response.header('connection')).toEqual(['close']);
    expect(response.isComplete).toBe(true);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'request_too_large' } });
    expect((await client.readToClose()).toString('latin1')).toBe('');
    expect(await gateway.nextRecord()).toMatchObject({ status: 413, error_type: 'request_too_large' });
  });

  test.for(early)('is refused %s, and a client that writes on is cut off', async ([, head, toBytes]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);

    client.write(head);
    const takenBytes = writeEndlessly(client.socket, toBytes(Buffer.alloc(64 * 1024)));

    expect((await client.readResponse()).status).toBe(413);
    await untilGone(client.socket);
    expect(takenBytes()).toBeLessThan(BUFFERS_BYTES);
  });

  test('can be refused to a client that reads only when it has written everything', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);
    client.socket.pause();

    const body = Buffer.alloc(1.5 * MIB, 0x20);
    await new Promise((resolve) => {
      client.socket.write(postBytes('/v1/chat/completions', body), resolve);
    });
    client.socket.resume();
    const response = await client.readResponse();

    expect(response.status).toBe(413);
    expect(response.header('connection')).toEqual(['close']);
    await client.readToClose();
  });

  test.for([
    ['unsupported_encoding', 415, 'Content-Encoding: gzip\r\n'],
    ['request_too_large', 413, ''],
  ] as const)('or one that is refused early (%s) keeps no connection', async ([code, status, field]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);

    client.write(`${CHAT}${field}Content-Length: ${2 * MIB}\r\n\r\n{"model"`);
    const response = await client.readResponse();

    expect(response.status).toBe(status);
    expect(response.header('connection')).toEqual(['close']);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code } });
    await client.readToClose();
  });
});

describe('after a request with Connection: close', () => {
  const closing = [
    ['POST', postBytes('/v1/chat/completions', '{"model":"m"}', ['Connection: close'])],
    ['GET /healthz', Buffer.from('GET /healthz HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n')],
    ['GET /v1/models', Buffer.from('GET /v1/models HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n')],
  ] as const;
  const extras = [
    ['a line end', '\r\n'],
    ['another request', 'GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n'],
    ['bytes that are no HTTP', 'x'.repeat(1000)],
  ] as const;
  const each = closing.flatMap(([name, bytes]) =>
    extras.map(([what, extra]) => ({ name, what, bytes: Buffer.concat([bytes, Buffer.from(extra)]) })),
  );

  test.for(each)('$name, $what is not looked at: the answer comes, and the end', async ({ bytes }) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);

    client.write(bytes);
    const response = await client.readResponse();

    expect(response.status).toBe(200);
    expect(response.isComplete).toBe(true);
    expect(response.header('connection')).toEqual(['close']);
    expect((await client.readToClose()).toString('latin1')).toBe('');
  });

  test.for(closing)('%s, a client that goes on sending loses the connection', async ([, bytes]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: CONFIG });
    using client = await RawConnection.open(gateway.url);

    client.write(bytes);
    const takenBytes = writeEndlessly(client.socket, Buffer.alloc(1024, 'x'));
    expect((await client.readResponse()).status).toBe(200);

    await untilGone(client.socket);
    expect(takenBytes()).toBeLessThan(BUFFERS_BYTES);
  });
});
