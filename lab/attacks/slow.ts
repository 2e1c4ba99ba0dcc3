import type { Socket } from 'node:net';
import { setInterval as ticks } from 'node:timers/promises';
import type { RawConnection } from '#testkit/raw-http.ts';
import { type Attack, BODY, CHAT, CHAT_LINE, post, UPLOAD_LINE, UPLOADS } from './attack.ts';

/** Sends a byte now and then, until the gateway closes. */
const drip = (start: string, piece: string) => async (client: RawConnection) => {
  client.write(start);
  for await (const _ of ticks(20)) {
    if (client.isClosed || client.socket.bytesRead > 0) return;
    client.write(piece);
  }
};

const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}';
/** More than the buffers of the sockets hold, and less than a body may have. */
const LARGE_BYTES = 30 * 1024 * 1024;
const LARGE_BODY = `{"model":"m","prompt":"${'x'.repeat(LARGE_BYTES)}"}`;
const LARGE_CHAT = post([`Content-Length: ${LARGE_BODY.length}`], LARGE_BODY);

/** Reads one byte at a time, and answers when it has read this end. The system reads ahead as far as its buffers go. */
const readsByteByByte = (end: string | null) => async (socket: Socket) => {
  socket.pause();
  let read = '';
  for await (const _ of ticks(1)) {
    if (socket.destroyed) return;
    read = (read + ((socket.read(1) as string | null) ?? '')).slice(-(end?.length ?? 0));
    if (read === end) break;
  }
  socket.end(OK);
};
const readsNothing = (socket: Socket) => void socket.pause();

const slowReplica = (name: string, status: number, more: Partial<Attack>): Attack => ({
  name: `a replica that reads ${name}`,
  source: 'RFC 9293 3.8.6, zero windows; Shekyan 2012, "Slow Read"',
  statuses: [status],
  closes: false,
  seen: [CHAT_LINE],
  ...more,
});

/** Attacks that take their time. The gateway's time-outs are short here. */
export const SLOW: readonly Attack[] = [
  {
    name: 'slowloris on the head',
    source: 'CVE-2018-12122; Hansen 2009, "Slowloris"',
    act: drip('GET /healthz HTTP/1.1\r\nHost: g\r\nX-A: ', 'a'),
    statuses: [408],
  },
  {
    name: 'slowloris on the body',
    source: 'Chee and Brennan 2010, "R-U-Dead-Yet"',
    act: drip(post(['Content-Length: 100000'], '{"model":"'), 'm'),
    statuses: [408],
  },
  {
    name: 'slowloris by chunks',
    source: 'Chee and Brennan 2010, "R-U-Dead-Yet"',
    act: drip(post(['Transfer-Encoding: chunked'], '1\r\n{'), '\r\n1\r\n '),
    statuses: [408],
  },
  {
    name: 'a connection on which nothing comes',
    source: 'RFC 9112 9.5',
    act: async () => undefined,
    statuses: [0],
  },
  slowReplica('a chat byte by byte, then answers', 200, { onRequest: readsByteByByte(BODY) }),
  slowReplica('a chat of 30 MB byte by byte', 504, { bytes: LARGE_CHAT, onRequest: readsByteByByte(null) }),
  slowReplica('nothing of a chat', 504, { bytes: CHAT, onRequest: readsNothing }),
  slowReplica('nothing of a chat of 30 MB', 504, { bytes: LARGE_CHAT, onRequest: readsNothing }),
  slowReplica('an upload of 30 MB byte by byte', 504, {
    bytes: post([`Content-Length: ${LARGE_BYTES}`], 'x'.repeat(LARGE_BYTES), UPLOADS),
    onRequest: readsByteByByte(null),
    closes: true,
    seen: [UPLOAD_LINE],
  }),
];
