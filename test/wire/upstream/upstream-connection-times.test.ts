import { describe, expect, test } from 'vitest';
import { type ServerSide, startTcpServer, type TcpServer } from '#testkit/servers/tcp-server.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { type Collector, connectAsGateway, open, type Received, sendOn } from './collect-response.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
const ANSWER = `${HEAD}ok`;
const FIRST_BYTE_MS = 1_000;
const IDLE_MS = 100;
const TIMES = { firstByteMs: FIRST_BYTE_MS, idleMs: IDLE_MS };
/** More than the buffers of two sockets hold. */
const HUGE = Buffer.alloc(64 * 1024 * 1024);

/** A connection to a server, at a time that the test passes. */
async function connect(server: TcpServer) {
  const time = new ScriptedTime();
  const connections = connectAsGateway(server.url, time);
  const connection = await open(connections);
  const side = await server.next();
  return { time, connections, connection, side };
}

/** Sends these bytes and resolves when the handler has seen them all. */
async function answer(side: ServerSide, bytes: string, { steps }: Collector): Promise<void> {
  const seen = steps.items.length;
  side.write(bytes);
  await steps.until(() => steps.items.slice(seen).some((step) => step === 'read end' || step === 'end'));
}

describe('the time to the head of an answer', () => {
  test('begins at the end of a body that comes slowly', async () => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const { result, steps } = sendOn(connection, { ...TIMES, body: null });
    time.passTo(10 * FIRST_BYTE_MS);
    connection.writeBody('', Buffer.from('pi'), '');
    time.passTo(20 * FIRST_BYTE_MS);
    connection.endBody('ng');
    await side.untilReceived('ping');
    time.passTo(21 * FIRST_BYTE_MS - 1);
    expect(steps.items).toEqual(['written']);

    side.write(ANSWER);

    expect(((await result) as Received).body.toString()).toBe('ok');
  });

  test.each(['at once', 'as it comes'])('ends a request whose body was sent %s', async (way) => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const { steps, result } = sendOn(connection, way === 'at once' ? TIMES : { ...TIMES, body: null });
    if (way !== 'at once') connection.endBody('ping');
    await side.untilReceived('ping');
    time.passTo(FIRST_BYTE_MS - 1);
    expect(steps.items).toEqual(['written']);
    time.passTo(FIRST_BYTE_MS);
    expect(await result).toBe('timed_out');
  });

  test.each(['at once', 'as it comes'])(
    'ends a request whose body is sent %s to a server that does not read it',
    async (way) => {
      await using server = await startTcpServer({ readsNothing: true });
      const { time, connection } = await connect(server);
      const isWhole = way === 'at once';
      const { result, steps } = sendOn(connection, { ...TIMES, body: isWhole ? [HUGE] : null });
      if (!isWhole) {
        connection.writeBody('', HUGE, '');
        connection.endBody('');
      }
      time.passTo(FIRST_BYTE_MS);
      expect(await result).toBe('timed_out');
      expect(steps.items).toEqual(['fault']);
    },
  );

  test.each(['at once', 'as it comes'])(
    'begins when the server has taken all of a body that is sent %s',
    async (way) => {
      await using server = await startTcpServer({ readsNothing: true });
      const { time, connection, side } = await connect(server);
      const isWhole = way === 'at once';
      const { result, steps } = sendOn(connection, { ...TIMES, body: isWhole ? [HUGE] : null });
      if (!isWhole) {
        connection.writeBody('', HUGE, '');
        connection.endBody('');
      }
      time.passTo(FIRST_BYTE_MS - 1);
      side.socket.resume();
      await steps.until(() => steps.items.includes('written'));
      time.passTo(2 * FIRST_BYTE_MS - 2);
      expect(steps.items).toEqual(['written']);

      side.write(ANSWER);

      expect(((await result) as Received).head.status).toBe(200);
    },
  );
});

describe('a server that is silent in an answer', () => {
  test('is given up when the idle time is over, and not while it is not read', async () => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const collector = sendOn(connection, TIMES);
    await side.untilReceived('ping');
    await answer(side, `${HEAD}o`, collector);
    connection.pause();
    time.passTo(10 * FIRST_BYTE_MS);
    expect(connection.isClosed).toBe(false);

    connection.resume();
    time.passTo(10 * FIRST_BYTE_MS + IDLE_MS - 1);
    expect(connection.isClosed).toBe(false);
    time.passTo(10 * FIRST_BYTE_MS + IDLE_MS);

    expect(await collector.result).toBe('timed_out');
  });

  test('is not given up while it is not read, also if that began with its head', async () => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const asked = sendOn(connection, TIMES);
    asked.onStep = (step) => {
      if (step === 'head') connection.pause();
    };
    await side.untilReceived('ping');
    await answer(side, `${HEAD}o`, asked);
    time.passTo(100 * IDLE_MS);
    expect(asked.steps.items).not.toContain('fault');

    connection.resume();
    side.write('k');

    expect(((await asked.result) as Received).body.toString()).toBe('ok');
  });

  test('is given time anew by each of its bytes', async () => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const collector = sendOn(connection, TIMES);
    await side.untilReceived('ping');
    for (const [atMs, bytes] of [
      [FIRST_BYTE_MS - 1, HEAD],
      [FIRST_BYTE_MS + IDLE_MS - 2, 'o'],
    ] as const) {
      time.passTo(atMs);
      await answer(side, bytes, collector);
    }
    time.passTo(FIRST_BYTE_MS + 2 * IDLE_MS - 3);
    expect(connection.isClosed).toBe(false);
    time.passTo(FIRST_BYTE_MS + 2 * IDLE_MS - 2);
    expect(await collector.result).toBe('timed_out');
  });

  test('counts from the head of the answer, also where the end of the request comes later', async () => {
    await using server = await startTcpServer();
    const { time, connection, side } = await connect(server);
    const collector = sendOn(connection, { ...TIMES, body: null });
    await side.untilReceived('\r\n\r\n');
    await answer(side, HEAD, collector);
    connection.endBody('ping');
    expect(collector.steps.items).toContain('written');
    time.passTo(IDLE_MS);
    expect(await collector.result).toBe('timed_out');
  });
});

describe('a server counts as silent', () => {
  test('since it has all of the request, and since its last byte, but not while it is not read', async () => {
    await using server = await startTcpServer();
    const { time, connections, connection, side } = await connect(server);
    const collector = sendOn(connection, { ...TIMES, body: null });
    time.passTo(5);
    expect(connections.observeSilence()).toEqual({ heardMs: null, waitingSinceMs: null });
    connection.endBody('ping');
    await side.untilReceived('ping');
    expect(connections.observeSilence()).toEqual({ heardMs: null, waitingSinceMs: 5 });

    time.passTo(10);
    await answer(side, HEAD, collector);
    expect(connections.observeSilence()).toEqual({ heardMs: null, waitingSinceMs: 10 });
    time.passTo(15);
    await answer(side, 'o', collector);
    time.passTo(20);
    expect(connections.observeSilence()).toEqual({ heardMs: 15, waitingSinceMs: 15 });

    connection.pause();
    expect(connections.observeSilence()).toEqual({ heardMs: null, waitingSinceMs: null });
    connection.resume();
    expect(connections.observeSilence()).toEqual({ heardMs: 20, waitingSinceMs: 20 });

    time.passTo(25);
    await answer(side, 'k', collector);
    expect(connections.observeSilence()).toEqual({ heardMs: 25, waitingSinceMs: null });
  });

  test('until a byte of the body comes, in later answers too: a head may come although the engine is frozen', async () => {
    await using server = await startTcpServer();
    const { time, connections, connection, side } = await connect(server);
    const first = sendOn(connection, TIMES);
    await side.untilReceived('ping');
    time.passTo(5);
    await answer(side, ANSWER, first);
    expect(connections.takeIdle()).toBe(connection);

    time.passTo(10);
    const second = sendOn(connection, TIMES);
    await side.untilReceived('ping');
    expect(connections.observeSilence()).toEqual({ heardMs: 5, waitingSinceMs: 10 });
    time.passTo(15);
    await answer(side, HEAD, second);
    expect(connections.observeSilence()).toEqual({ heardMs: 5, waitingSinceMs: 15 });
  });

  test('since the request that has waited longest, and is heard on any connection', async () => {
    await using server = await startTcpServer();
    const { time, connections, connection, side } = await connect(server);
    sendOn(connection, TIMES);
    await side.untilReceived('ping');
    time.passTo(5);
    const later = sendOn(await open(connections), TIMES);
    const laterSide = await server.next();
    await laterSide.untilReceived('ping');
    expect(connections.observeSilence()).toEqual({ heardMs: null, waitingSinceMs: 0 });
    time.passTo(10);
    await answer(laterSide, `${HEAD}o`, later);
    expect(connections.observeSilence()).toEqual({ heardMs: 10, waitingSinceMs: 0 });
  });
});
