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

function answerWith(pieces: readonly string[][], trailers: readonly (readonly [string, string])[] = []) {
  return (response: ServerResponse) => {
    response.sendDate = false;
    response.writeHead(200, ['Content-Type', 'text/event-stream']);
    const body = new ChunkedBody(response);
    for (const chunk of pieces) body.write(chunk.map((piece) => Buffer.from(piece)));
    body.end(trailers);
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

test('a client of HTTP/1.0 gets the bytes as they are, and the end of the connection', async () => {
  const response = await onTheWire('1.0', answerWith([['a', 'b'], ['c']], [['X-Sum', '1']]));
  expect(response).not.toContain('Transfer-Encoding');
  expect(bodyOf(response)).toBe('abc');
});
