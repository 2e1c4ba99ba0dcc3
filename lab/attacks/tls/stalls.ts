import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setInterval as ticks } from 'node:timers/promises';
import { clientHello, serverName, withTls13 } from './client-hello.ts';
import { openTcp, send, toWords, untilClosed } from './send.ts';
import type { TlsAttack, TlsTarget } from './tls-attack.ts';
import { openWire } from './wire.ts';

/** As many at once as an attacker with few addresses may hold, and few enough for a machine of two cores. */
const CROWD = 100;
const HELLO_COUNT = 2_000;

/** Opens a crowd of connections, has each do the same, and resolves when the gateway has closed all of them. */
const crowd =
  (each: (socket: Socket) => void | Promise<void>) =>
  async ({ url }: TlsTarget): Promise<string> => {
    const words = await Promise.all(
      Array.from({ length: CROWD }, async () => {
        const socket = await openTcp(url);
        const read = readAll(socket);
        await each(socket);
        return toWords(await read);
      }),
    );
    return [...new Set(words)].join(' or ');
  };

/** All bytes until the gateway closes. This side stays open until then. */
async function readAll(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  socket.on('data', (piece: Buffer) => pieces.push(piece));
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  socket.destroy();
  return Buffer.concat(pieces);
}

const stalled = (
  name: string,
  outcome: string,
  each: (socket: Socket) => void | Promise<void>,
): TlsAttack => ({
  name: `${CROWD} handshakes: ${name}`,
  outcome,
  source: 'Hansen 2009, "Slowloris"; RFC 8446 D.5',
  act: crowd(each),
});

/** Leaves a crowd of handshakes at this byte of the hello; `null`: when the gateway has answered. */
const left = (name: string, at: number | null, leave: (socket: Socket) => void): TlsAttack => ({
  name: `${CROWD} handshakes that a client ${name}`,
  outcome: 'closed',
  source: 'RFC 9293 3.6; CVE-2011-1473',
  act: async ({ url }) => {
    await Promise.all(
      Array.from({ length: CROWD }, async () => {
        const socket = await openTcp(url);
        socket.write(clientHello().subarray(0, at ?? undefined));
        if (at === null) await once(socket, 'data');
        leave(socket.resume());
        await untilClosed(socket);
      }),
    );
    return 'closed';
  },
});

const ends = (socket: Socket) => void socket.end();
const resets = (socket: Socket) => void socket.resetAndDestroy();

/** Handshakes that take their time, that end early, and thousands of them. */
export const STALLS: readonly TlsAttack[] = [
  stalled('nothing is sent', 'closed', () => undefined),
  stalled('half a hello, then nothing', 'closed', (socket) => {
    const hello = clientHello();
    socket.write(hello.subarray(0, hello.length >> 1));
  }),
  stalled('a hello byte by byte, each in time', 'closed', async (socket) => {
    const hello = clientHello();
    let sent = 0;
    for await (const _ of ticks(50)) {
      if (socket.destroyed || socket.readableEnded) return;
      if (sent < hello.length - 1) socket.write(hello.subarray(sent, ++sent));
    }
  }),
  stalled('nothing follows the answer of the gateway', 'hello', (socket) => void socket.write(clientHello())),
  left('ends at once', 0, ends),
  left('resets at once', 0, resets),
  left('ends within the hello', 100, ends),
  left('resets within the hello', 100, resets),
  left('ends behind the hello', null, ends),
  left('resets behind the hello', null, resets),
  {
    name: 'as many whole handshakes as connections are taken, then nothing',
    source: 'CVE-2011-1473, "THC-SSL-DOS"; RFC 9112 9.5',
    act: async ({ url, ca, connectionCount }) => {
      const outcomes = new Set<string>();
      // A few at a time: the attacker's own work would delay the others beyond the time-out.
      await inTurns(connectionCount, 20, async () => {
        const wire = await openWire(url, { ca });
        return async () => void outcomes.add(await wire.untilClosed());
      });
      return [...outcomes].join(' or ');
    },
    outcome: 'closed',
  },
  {
    name: `${HELLO_COUNT} hellos with as many names`,
    source: 'RFC 6066 3',
    act: async ({ url }) => {
      const outcomes = new Set<string>();
      await inTurns(HELLO_COUNT, 50, async (index) => {
        const name = serverName(`${index}.${'x'.repeat(200)}.example`);
        outcomes.add(await send(url, clientHello({ extensions: withTls13(name) })));
        return async () => undefined;
      });
      return [...outcomes].join(' or ');
    },
    outcome: 'hello',
  },
];

/** Begins this many, a few at a time; then waits for the ends of all. */
async function inTurns(
  count: number,
  atOnce: number,
  begin: (index: number) => Promise<() => Promise<void>>,
): Promise<void> {
  const ends: Promise<void>[] = [];
  for (let done = 0; done < count; done += atOnce) {
    const begun = await Promise.all(Array.from({ length: atOnce }, (_, index) => begin(done + index)));
    ends.push(...begun.map((end) => end()));
  }
  await Promise.all(ends);
}
