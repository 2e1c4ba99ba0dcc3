import { type Attack, BODY, CHAT_LINE, onText, post, UPLOAD_LINE, UPLOADS } from './attack.ts';

const length = `Content-Length: ${BODY.length}`;
const TE = 'Transfer-Encoding: chunked';
const EXPECT = 'Expect: 100-continue';
const CHUNK = `d\r\n${BODY}\r\n`;

const expecting = (
  name: string,
  statuses: readonly number[],
  bytes: string,
  more: Partial<Attack> = {},
): Attack => ({
  name: `an expectation ${name}`,
  source: 'RFC 9110 10.1.1',
  bytes,
  statuses,
  closes: false,
  seen: [CHAT_LINE],
  ...more,
});

/** Sends the body only when the gateway asks for it. */
const waiting = (name: string, head: string, body: string, more: Partial<Attack> = {}): Attack => ({
  ...expecting(name, [100, 200], '', more),
  act: async (client) => {
    client.write(head);
    await client.untilBuffered('100 Continue');
    client.write(body);
  },
});

const trailing = (
  name: string,
  status: number,
  trailer: string,
  fields: readonly string[] = [TE],
): Attack => ({
  name: `trailer fields: ${name}`,
  source: 'RFC 9110 6.5, RFC 9112 7.1.2',
  bytes: post(fields, `${CHUNK}0\r\n${trailer}\r\n`),
  statuses: [status],
  ...(status === 200 ? { closes: false, seen: [CHAT_LINE] } : {}),
});

/** What may stand before and behind a body: expectations of 100, and trailer fields. */
export const BODIES: readonly Attack[] = [
  waiting('with a length', post([EXPECT, length], ''), BODY),
  waiting('with chunks', post([EXPECT, TE], ''), `${CHUNK}0\r\n\r\n`),
  waiting('in other letters', post(['eXPECT: 100-CONTINUE', length], ''), BODY),
  waiting('of an upload', post([EXPECT, TE], '', UPLOADS), `${CHUNK}0\r\n\r\n`, {
    seen: [UPLOAD_LINE],
    onHead: (socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      onText(
        socket,
        '0\r\n\r\n',
        () => void socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'),
      );
    },
  }),
  waiting('of an upload that the replica refuses', post([EXPECT, TE], '', UPLOADS), CHUNK, {
    statuses: [100, 417],
    seen: [UPLOAD_LINE],
    closes: true,
    onHead: (socket) =>
      void socket
        .resume()
        .write('HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'),
  }),
  expecting('whose body comes at once', [100, 200], post([EXPECT, length], BODY)),
  expecting('twice', [200], post([EXPECT, EXPECT, length], BODY)),
  expecting('in HTTP/1.0', [200], post([EXPECT, length], BODY).replace('HTTP/1.1', 'HTTP/1.0'), {
    closes: true,
  }),
  expecting('without a body', [400], post([EXPECT], ''), { seen: [] }),
  expecting('of an empty body', [400], post([EXPECT, 'Content-Length: 0'], ''), { seen: [] }),
  expecting('of a body over the limit', [413], post([EXPECT, 'Content-Length: 999999999'], ''), {
    seen: [],
    closes: true,
  }),
  expecting('whose body never comes', [100, 408], post([EXPECT, length], ''), { seen: [], closes: true }),
  trailing('one that nobody announced', 200, 'X-A: b\r\n'),
  trailing('one that was announced', 200, 'X-A: b\r\n', [TE, 'Trailer: X-A']),
  trailing('a key', 200, 'Authorization: Bearer x\r\n'),
  trailing('a Host', 400, 'Host: other\r\n'),
  trailing('a coding', 400, 'Transfer-Encoding: chunked\r\n'),
  trailing('a bare CR', 400, 'X-A: b\rX-B: c\r\n'),
  trailing('10,000 of them', 400, 'X-A: b\r\n'.repeat(10_000)),
  trailing('one of 1 MB', 400, `X-A: ${'b'.repeat(1_000_000)}\r\n`),
];
