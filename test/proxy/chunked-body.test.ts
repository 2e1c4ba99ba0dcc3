import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { ChunkedBody } from '../../src/proxy/chunked-body.ts';

/** All bytes of a response on the wire, for a request of this HTTP version. */
async function onTheWire(version: string, answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`GET / HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
  return await text(socket);
}

const toBuffers = (pieces: readonly string[]) => pieces.map((piece) => Buffer.from(piece));

function answerWith(
  pieces: readonly string[][],
  trailers: readonly (readonly [string, string])[] = [],
  last: readonly string[] = [],
) {
  return (response: ServerResponse) => {
    response.sendDate = false;
    response.writeHead(200, ['Content-Type', 'text/event-stream']);
    const body = new ChunkedBody(response);
    for (const chunk of pieces) body.write(toBuffers(chunk));
    body.end(toBuffers(last), trailers);
  };
}

const bodyOf = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);

test('each write is one chunk, whatever it is put together from', async () => {
  const response = await onTheWire('1.1', answerWith([['data: a', '\n\n'], ['data: ø\n\n']]));
  expect(response).toContain('Transfer-Encoding: chunked\r\n');
  expect(bodyOf(response)).toBe('9\r\ndata: a\n\n\r\na\r\ndata: ø\n\n\r\n0\r\n\r\n');
});

test('nothing to write is not taken for the end', async () => {
  const response = await onTheWire('1.1', answerWith([['a'], [''], [], ['b']]));
  expect(bodyOf(response)).toBe('1\r\na\r\n1\r\nb\r\n0\r\n\r\n');
});

test.each([16 * 1024, 16 * 1024 + 1, 1_000_000])('a chunk of %i bytes is whole', async (sizeBytes) => {
  const piece = 'x'.repeat(sizeBytes);
  const response = await onTheWire('1.1', answerWith([[piece]]));
  expect(bodyOf(response) === `${sizeBytes.toString(16)}\r\n${piece}\r\n0\r\n\r\n`).toBe(true);
});

test('trailer fields stand behind the last chunk', async () => {
  const response = await onTheWire(
    '1.1',
    answerWith(
      [['a']],
      [
        ['X-Sum', '1'],
        ['X-End', 'yes'],
      ],
    ),
  );
  expect(bodyOf(response)).toBe('1\r\na\r\n0\r\nX-Sum: 1\r\nX-End: yes\r\n\r\n');
});

test.each([
  [[], '0\r\n'],
  [[''], '0\r\n'],
  [['b', 'c'], '2\r\nbc\r\n0\r\n'],
  [['b'.repeat(16 * 1024 + 1)], `4001\r\n${'b'.repeat(16 * 1024 + 1)}\r\n0\r\n`],
])('the last pieces go with the end', async (last, expected) => {
  const response = await onTheWire('1.1', answerWith([['a']], [['X-Sum', '1']], last));
  expect(bodyOf(response) === `1\r\na\r\n${expected}X-Sum: 1\r\n\r\n`).toBe(true);
});

test('a client of HTTP/1.0 gets the bytes as they are, and the end of the connection', async () => {
  const response = await onTheWire('1.0', answerWith([['a', 'b'], ['c']], [['X-Sum', '1']], ['d', 'e']));
  expect(response).not.toContain('Transfer-Encoding');
  expect(bodyOf(response)).toBe('abcde');
});
