import type { Socket } from 'node:net';
import { setInterval as ticks } from 'node:timers/promises';
import type { RawConnection } from '#testkit/raw-http.ts';
import {
  type Attack,
  BODY,
  CHAT_LINE,
  onText,
  post,
  UPLOAD_LINE,
  UPLOADS,
  type WatchedReplica,
} from './attack.ts';

// The connection is not used again: what the replica does not read of a body would be in front of the next request.
const TOO_LARGE = 'HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}';
const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}';
const STREAM =
  'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const EVENT = '9\r\ndata: 1\n\n\r\n';
const LAST_CHUNK = '0\r\n\r\n';
/** More than the buffers of the sockets hold. */
const LARGE_BYTES = 24 * 1024 * 1024;
const LARGE_CHAT = `{"model":"m","messages":[{"role":"user","content":"${'x'.repeat(1_000_000)}"}]}`;

/** An upload of which only the beginning comes. */
const BEGUN = post([`Content-Length: ${LARGE_BYTES}`], 'x'.repeat(100_000), UPLOADS);

const upload = (
  name: string,
  status: number,
  onHead: (socket: Socket) => void,
  more: Partial<Attack> = {},
): Attack => ({
  name: `an upload: ${name}`,
  source: 'RFC 9112 9.3, 9.6; Kettle 2025, "HTTP/1.1 must die"',
  bytes: BEGUN,
  onHead,
  statuses: [status],
  seen: [UPLOAD_LINE],
  ...more,
});
const chat = (name: string, status: number, onHead: (socket: Socket) => void): Attack => ({
  name: `a chat of 1 MB: ${name}`,
  source: 'RFC 9112 9.3, 9.6',
  onHead,
  bytes: post([`Content-Length: ${LARGE_CHAT.length}`], LARGE_CHAT),
  statuses: [status],
  closes: false,
  seen: [CHAT_LINE],
});

/** Answers when it has read this many bytes of a body, slowly. */
const readsSlowly = (byteCount: number) => (socket: Socket) => {
  let readBytes = 0;
  socket.on('data', (bytes: Buffer | string) => {
    readBytes += bytes.length;
    socket.pause();
    setTimeout(() => socket.resume(), 2);
    if (readBytes >= byteCount) socket.write(OK);
  });
};

/** Writes events without end, as fast as they are taken. */
const floods = (socket: Socket) => {
  socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
  const write = () => {
    while (!socket.destroyed && socket.write(`data: ${'x'.repeat(1000)}\n\n`));
  };
  socket.on('drain', write);
  write();
};

/** A client that takes so many bytes of an answer without end, each time after so many milliseconds. */
const takes =
  (byteCount: number, everyMs: number, isOver: (takenBytes: number) => boolean) =>
  async (client: RawConnection, replica: WatchedReplica) => {
    const { socket } = client;
    socket.removeAllListeners('data').pause();
    let isCut = false;
    void replica.untilReplicaClosed().then(() => {
      isCut = true;
    });
    client.write(post([`Content-Length: ${BODY.length}`], BODY));
    let takenBytes = 0;
    for await (const _ of ticks(everyMs)) {
      const piece: Buffer | null = socket.read(byteCount) ?? socket.read();
      takenBytes += piece?.length ?? 0;
      if (isCut || isOver(takenBytes)) break;
    }
    if (isCut === isOver(takenBytes)) throw new Error(`cut: ${isCut}, after ${takenBytes} bytes`);
    socket.destroy();
  };

/** Answers before the end of the request, and readers that read slowly but do read. */
export const EARLY_ANSWERS: readonly Attack[] = [
  upload(
    '413 before its end, and the replica reads on',
    413,
    (socket) => void socket.resume().write(TOO_LARGE),
  ),
  upload(
    '413 before its end, and the replica reads no more',
    413,
    (socket) => void socket.pause().write(TOO_LARGE),
  ),
  upload('413 before its end, and the replica ends', 413, (socket) => void socket.end(TOO_LARGE)),
  upload('200 before its end, and the replica ends', 200, (socket) => void socket.end(OK)),
  upload('no answer, and the replica ends', 502, (socket) => void socket.end(), { closes: true }),
  upload('no answer, and the replica resets', 502, (socket) => void socket.resetAndDestroy(), {
    closes: true,
  }),
  upload('a part of an answer, and the replica ends', 200, (socket) => void socket.end(STREAM + EVENT), {
    isComplete: false,
  }),
  upload(
    'events before its end, and more behind it',
    200,
    (socket) => {
      socket.write(STREAM + EVENT);
      onText(socket, LAST_CHUNK, () => void socket.end(EVENT + LAST_CHUNK));
    },
    {
      act: async (client) => {
        client.write(post(['Transfer-Encoding: chunked'], `d\r\n${BODY}\r\n`, UPLOADS));
        await client.untilBuffered('data: 1');
        client.write(`d\r\n${BODY}\r\n${LAST_CHUNK}`);
      },
    },
  ),
  upload('a replica that reads nothing of it', 504, (socket) => void socket.pause(), {
    bytes: post([`Content-Length: ${LARGE_BYTES}`], 'x'.repeat(LARGE_BYTES), UPLOADS),
  }),
  chat(
    '413 before its end, and the replica reads on',
    413,
    (socket) => void socket.resume().write(TOO_LARGE),
  ),
  chat('200 before its end, and the replica reads on', 200, (socket) => void socket.resume().write(OK)),
  chat('events before its end, and more behind them', 200, (socket) => {
    socket.resume().write(STREAM + EVENT);
    socket.write(EVENT + LAST_CHUNK);
  }),
  chat('a replica that reads it slowly', 200, readsSlowly(LARGE_CHAT.length)),
  {
    name: 'a client that reads one byte per second of an answer without end',
    source: 'CVE-2019-9517 in HTTP/1.1; Shekyan 2012, "Slow Read"',
    onHead: floods,
    act: takes(1, 1000, () => false),
    statuses: [0],
    seen: [CHAT_LINE],
  },
  {
    name: 'a client that reads slowly, but on and on, of an answer without end',
    source: 'Shekyan 2012, "Slow Read"',
    onHead: floods,
    act: takes(256 * 1024, 20, (takenBytes) => takenBytes > 16 * 1024 * 1024),
    statuses: [0],
    seen: [CHAT_LINE],
  },
];
