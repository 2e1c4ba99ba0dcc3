import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHAT_LINE, post } from '../../attacks/attack.ts';
import { type RawReplica, startRawReplica } from '../../attacks/raw-replica.ts';

let replica: RawReplica;
beforeAll(async () => {
  replica = await startRawReplica();
});
afterAll(() => replica[Symbol.asyncDispose]());

const BODY = 'd\r\n{"model":"m"}\r\n0\r\n\r\n';
const REQUEST = post(['Transfer-Encoding: chunked'], BODY);

/** Sends the pieces, each in a turn of its own, and resolves with what the replica's conduct reads. */
async function send(pieces: readonly string[], conduct: 'onHead' | 'onRequest'): Promise<string> {
  replica.seen.length = 0;
  const expected = conduct === 'onHead' ? BODY : REQUEST;
  const { promise, resolve } = Promise.withResolvers<string>();
  replica.actOnce({
    [conduct]: (socket: Socket) => {
      let read = '';
      socket.resume().on('data', (piece: string) => {
        read += piece;
        if (read.length >= expected.length) resolve(read);
      });
      socket.once('end', () => resolve(read));
    },
  });
  const { hostname, port } = new URL(replica.url);
  const client = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(client, 'connect');
  for (const piece of pieces) {
    client.write(piece);
    // The replica reads what came within a turn of the event loop in one piece.
    await setImmediate();
    await setImmediate();
  }
  client.end();
  const read = await promise;
  client.destroy();
  return read;
}

test.each(['onHead', 'onRequest'] as const)(
  'a scripted replica (%s) reads each byte of a request once, however the bytes come',
  async (conduct) => {
    const expected = conduct === 'onHead' ? BODY : REQUEST;
    for (let at = 1; at <= REQUEST.length; at++) {
      expect(await send([REQUEST.slice(0, at), REQUEST.slice(at)], conduct), `cut at ${at}`).toBe(expected);
      expect(replica.seen).toEqual([CHAT_LINE]);
    }
  },
);
