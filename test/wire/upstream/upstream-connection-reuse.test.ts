import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type ServerSide, startTcpServer } from '#testkit/servers/tcp-server.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { startHttp } from '../start-http.ts';
import { connectAsGateway, open, type Received, sendOn } from './collect-response.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n';
/** More than the buffers of two sockets hold. */
const HUGE = Buffer.alloc(64 * 1024 * 1024);

describe('a connection that is answered before it has sent its request to the end', () => {
  test.each([
    ['of a body that is still to come', ''],
    ['of a body of which a part was sent', 'pi'],
  ])('carries no other request: the server would take it for the rest %s', async (_, part) => {
    await using server = await startTcpServer();
    const connections = connectAsGateway(server.url);
    const connection = await open(connections);
    const { result } = sendOn(connection, { body: null });
    if (part !== '') connection.writeBody('', Buffer.from(part), '');
    const side = await server.next();
    await side.untilReceived(HEAD + part);

    side.write(ANSWER);

    expect(((await result) as Received).body.toString()).toBe('ok');
    expect(connections.takeIdle()).toBeNull();
    await side.untilClosed();
  });

  test('carries no other request, where the server does not take all of a body that is there', async () => {
    await using server = await startTcpServer({ readsNothing: true });
    const connections = connectAsGateway(server.url);
    const { result, steps } = sendOn(await open(connections), { body: [HUGE] });

    (await server.next()).write(ANSWER);

    expect(((await result) as Received).head.status).toBe(200);
    expect(steps.items).not.toContain('written');
    expect(connections.takeIdle()).toBeNull();
  });

  test('carries another if it has sent the end of its body by then', async () => {
    await using server = await startTcpServer();
    const connections = connectAsGateway(server.url);
    const connection = await open(connections);
    const { result, steps } = sendOn(connection, { body: null });
    connection.writeBody('', Buffer.from('pi'), '');
    connection.endBody('ng');
    const side = await server.next();
    await side.untilReceived('ping');
    expect(steps.items).toEqual(['written']);

    side.write(ANSWER);

    await result;
    expect(connections.takeIdle()).toBe(connection);
  });
});

test.each<readonly [string, (side: ServerSide, time: ScriptedTime) => void, expected: unknown]>([
  ['is answered', (side) => side.write(ANSWER), { head: { status: 200 } }],
  ['is reset', ({ socket }) => void socket.resetAndDestroy(), 'closed'],
  ['is late', (_, time) => time.passTo(2_000), 'timed_out'],
])(
  'a request that %s before the server has taken all of it never counts as written',
  async (_, end, expected) => {
    await using server = await startTcpServer({ readsNothing: true });
    const time = new ScriptedTime();
    const connection = await open(connectAsGateway(server.url, time));
    const { result, steps } = sendOn(connection, { body: [HUGE], firstByteMs: 1_000 });

    end(await server.next(), time);

    if (typeof expected === 'string') expect(await result).toBe(expected);
    else expect(await result).toMatchObject(expected as object);
    // The callbacks of writes that were not made come when the socket is closed.
    await setImmediate();
    expect(steps.items).not.toContain('written');
  },
);

test.each(['data', 'head'])(
  'a connection that is paused in the last bytes of an answer (%s) reads the next answer',
  async (pausedIn) => {
    await using server = await startTcpServer();
    const connections = connectAsGateway(server.url);
    const connection = await open(connections);
    const first = sendOn(connection);
    first.onStep = (step) => {
      if (step === pausedIn) connection.pause();
    };
    const side = await server.next();
    await side.untilReceived('ping');
    side.write(ANSWER);
    await first.result;

    expect(connections.takeIdle()).toBe(connection);
    const second = sendOn(connection);
    await side.untilReceived('ping');
    side.write(ANSWER);

    expect(((await second.result) as Received).body.toString()).toBe('ok');
  },
);

test('every answer of a connection may have its 16 informational responses', async () => {
  await using server = await startTcpServer();
  const connections = connectAsGateway(server.url);
  const connection = await open(connections);
  const side = await server.next();
  for (let round = 1; round <= 3; round++) {
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    side.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(16) + ANSWER);
    expect(((await result) as Received).head.status).toBe(200);
    expect(connections.takeIdle()).toBe(connection);
  }
});

test('what waits until the server takes more is told so once, and not when a later request has to wait', async () => {
  using http = await startHttp((exchange) => {
    const onEnd = () => exchange.answer(200, 'text/plain', 'ok');
    exchange.readBody({ onData: () => undefined, onEnd, onTimeout: () => undefined }, 60_000);
  });
  const connections = connectAsGateway(http.url);
  const connection = await open(connections);
  const piece = HUGE.subarray(0, 16 * 1024 * 1024);
  const headText = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${piece.length}\r\n\r\n`;
  const sendPiece = () => {
    const { result } = sendOn(connection, { headText, body: null });
    expect(connection.writeBody('', piece, '')).toBe(false);
    return result;
  };
  let toldCount = 0;
  const first = sendPiece();
  await new Promise<void>((resolve) => {
    connection.onDrain = () => {
      toldCount++;
      resolve();
    };
  });
  connection.endBody('');
  await first;
  expect(connections.takeIdle()).toBe(connection);

  const second = sendPiece();
  connection.endBody('');

  expect(((await second) as Received).body.toString()).toBe('ok');
  expect(toldCount).toBe(1);
});
