import { expect, test } from 'vitest';
import { startTcpServer, type TcpServer } from '#testkit/servers/tcp-server.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { connectAsGateway, open, type Received, sendOn } from './collect-response.ts';

const HOUR_MS = 3_600_000;
const answerWith = (fields: string) => `HTTP/1.1 200 OK\r\n${fields}Content-Length: 2\r\n\r\nok`;

/** A connection that has carried one request, at a time that the test passes. */
async function startUsed(server: TcpServer, url = server.url, fields = '') {
  const time = new ScriptedTime();
  const connections = connectAsGateway(url, time);
  const connection = await open(connections);
  const side = await server.next();
  const { result } = sendOn(connection);
  await side.untilReceived('ping');
  side.write(answerWith(fields));
  expect(((await result) as Received).head.status).toBe(200);
  return { time, connections, connection, side };
}

test('a connection is closed one second before the server would close it', async () => {
  await using server = await startTcpServer();
  const { time, connections, connection, side } = await startUsed(
    server,
    server.url,
    'Keep-Alive: timeout=5\r\n',
  );
  time.passTo(3_999);
  expect(connection.isClosed).toBe(false);
  time.passTo(4_000);
  expect(connections.takeIdle()).toBeNull();
  await side.untilClosed();
});

test('a connection to a name carries no request once the name may have another address', async () => {
  await using server = await startTcpServer();
  const url = server.url.replace('127.0.0.1', 'localhost');
  const { time, connections, connection } = await startUsed(server, url);
  time.ms = HOUR_MS - 1;
  connections.clock.nowMs();
  expect(connections.takeIdle()).toBe(connection);
  connections.returnUnused(connection);
  time.ms = HOUR_MS;
  connections.clock.nowMs();
  expect(connections.takeIdle()).toBeNull();
  expect(connection.isClosed).toBe(true);
});

test('retired connections close when they are free, and one that is opened late closes at once', async () => {
  await using server = await startTcpServer();
  const { connections, connection, side } = await startUsed(server);
  expect(connections.takeIdle()).toBe(connection);
  const { result } = sendOn(connection);
  await side.untilReceived('ping');
  connections.retire();
  side.write(answerWith(''));
  expect(((await result) as Received).head.status).toBe(200);
  await side.untilClosed();

  const late = open(connections);
  connections.destroy();
  expect((await late).isClosed).toBe(true);
});

test('the limit of a head is that of each head, also where informational responses come before it', async () => {
  await using server = await startTcpServer();
  const connections = connectAsGateway(server.url);
  const { result } = sendOn(await open(connections));
  const side = await server.next();
  await side.untilReceived('ping');
  side.write(
    `HTTP/1.1 103 Early Hints\r\nX: ${'x'.repeat(12 * 1024)}\r\n\r\n${answerWith(`Y: ${'y'.repeat(12 * 1024)}\r\n`)}`,
  );
  expect(((await result) as Received).head.status).toBe(200);
});
