import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type Attack, BODY, CHAT_LINE, post } from './attack.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const SSE = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n';
const BOMB_BYTES = 64 * 1024 * 1024;
/** More than the buffers on the way hold. */
const MUCH_BYTES = 16 * 1024 * 1024;

const says = (bytes: string | Uint8Array) => (socket: Socket) => void socket.end(bytes as string, 'latin1');
const keeps = (bytes: string) => (socket: Socket) => void socket.write(bytes, 'latin1');

/** Writes the piece without end, as fast as it is taken. */
const floods = (start: string, piece: string) => (socket: Socket) => {
  socket.write(start);
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', write);
  write();
};

const failed = (source: string, name: string, replica: Attack['replica']): Attack => ({
  name,
  source,
  replica: replica ?? (() => undefined),
  statuses: [502],
  closes: false,
  seen: [CHAT_LINE],
});
const cut = (source: string, name: string, replica: Attack['replica']): Attack => ({
  ...failed(source, name, replica),
  statuses: [200],
  isComplete: false,
  closes: true,
});
const passed = (source: string, name: string, replica: Attack['replica']): Attack => ({
  ...failed(source, name, replica),
  statuses: [200],
});

/** The replica may have closed the connection before it saw the request, so that is repeated once. */
const repeated = (source: string, name: string, replica: Attack['replica']): Attack => ({
  ...passed(source, name, replica),
  seen: [CHAT_LINE, CHAT_LINE],
});

/** Reads this many bytes of the answer, then leaves. */
const takes =
  (byteCount: number): NonNullable<Attack['act']> =>
  async (client) => {
    let taken = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    client.socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
      taken += bytes.length;
      if (taken >= byteCount) resolve();
    });
    client.write(post([`Content-Length: ${BODY.length}`], BODY));
    await promise;
    client.socket.destroy();
  };

/** What a replica that is hostile, or broken, does to the gateway and its clients. */
export const REPLICA: readonly Attack[] = [
  failed(
    'RFC 9112 6.3',
    'length and chunks at once',
    says(`${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`),
  ),
  failed('RFC 9112 6.3', 'two lengths', says(`${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`)),
  failed('RFC 9112 6.1', 'an unknown coding', says(`${OK}Transfer-Encoding: gzip\r\n\r\n{}`)),
  failed(
    'RFC 9112 2.2; response splitting, CWE-113',
    'a bare CR in a field',
    says(`${OK}X-A: b\rSet-Cookie: c\r\nContent-Length: 2\r\n\r\n{}`),
  ),
  failed(
    'RFC 9112 2.2; response splitting, CWE-113',
    'a bare LF in a field',
    says(`${OK}X-A: b\nSet-Cookie: c\r\nContent-Length: 2\r\n\r\n{}`),
  ),
  failed('RFC 9110 5.5', 'a NUL in a field', says(`${OK}X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}`)),
  failed('RFC 9112 5.2', 'a folded field', says(`${OK}X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}`)),
  failed('RFC 9112 4', 'a status of four digits', says('HTTP/1.1 2000 OK\r\n\r\n')),
  failed('RFC 9112 appendix C.1', 'HTTP/0.9', says('<html>hello</html>')),
  failed('RFC 9113 3.4', 'HTTP/2', says(Buffer.from('000000040000000000', 'hex'))),
  failed(
    'RFC 9110 15.2.2',
    'a switch of protocols',
    keeps('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  ),
  failed('RFC 9110 15.2', '100 without end', floods('', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))),
  failed(
    'RFC 9110 15.2',
    '103 without end',
    floods('', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(100)),
  ),
  failed('CVE-2018-12121', 'a head without end', floods(OK, `X-A: ${'a'.repeat(1000)}\r\n`)),
  failed('CVE-2018-12121', 'a status line without end', floods('HTTP/1.1 200 ', 'a'.repeat(1000))),
  failed('RFC 9112 8', 'an end within the head', says('HTTP/1.1 200 OK\r\nContent-')),
  repeated('RFC 9112 9.3.1', 'an end of a used connection', (socket) => void socket.end()),
  repeated('RFC 9112 9.3.1', 'a reset of a used connection', (socket) => void socket.resetAndDestroy()),
  cut('RFC 9112 8', 'a length that is too long', says(`${OK}Content-Length: 100\r\n\r\n{}`)),
  cut(
    'RFC 9112 7.1',
    'a size that is no number',
    says(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n`),
  ),
  cut(
    'RFC 9112 7.1',
    'a size beyond 2^64',
    says(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n10000000000000002\r\n{}`),
  ),
  cut('RFC 9112 7.1', 'a chunk without its end', says(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}X`)),
  cut(
    'RFC 9112 7.1.2',
    'trailer fields that frame',
    says(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n`),
  ),
  cut(
    'CVE-2024-22019',
    'a chunk extension without end',
    floods(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1;a=`, 'x'.repeat(1000)),
  ),
  cut(
    'RFC 9112 7.1.2',
    'trailer fields without end',
    floods(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n`, 'X-A: b\r\n'.repeat(100)),
  ),
  passed(
    'RFC 9112 9.3; response queue poisoning, Kettle 2021',
    'a second response behind the first',
    keeps(`${OK}Content-Length: 2\r\n\r\n{}${OK}Content-Length: 3\r\n\r\n"x"`),
  ),
  passed('RFC 9112 6.3', 'bytes behind the response', keeps(`${OK}Content-Length: 2\r\n\r\n{}garbage`)),
  passed('RFC 9110 8.4', 'a gzip bomb, passed on as it is', (socket) => {
    const bomb = gzipSync(Buffer.alloc(BOMB_BYTES));
    socket.write(`${OK}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  }),
  {
    ...cut('WHATWG HTML 9.2.5', 'events without end', floods(SSE, `data: ${'x'.repeat(1000)}\n\n`)),
    act: takes(MUCH_BYTES),
    statuses: [0],
  },
  {
    ...cut('WHATWG HTML 9.2.5', 'one event without end', floods(`${SSE}data: `, 'x'.repeat(10_000))),
    act: takes(MUCH_BYTES),
    statuses: [0],
  },
  {
    ...cut(
      'CVE-2019-9517 in HTTP/1.1',
      'a client that reads nothing of an answer without end',
      floods(SSE, `data: ${'x'.repeat(1000)}\n\n`),
    ),
    act: async (client, { untilReplicaClosed }) => {
      client.socket.pause();
      client.write(post([`Content-Length: ${BODY.length}`], BODY));
      await untilReplicaClosed();
      client.socket.destroy();
    },
    statuses: [0],
  },
];
