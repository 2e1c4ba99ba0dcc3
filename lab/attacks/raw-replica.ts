import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { EventLog } from '../../test/support/event-log.ts';
import type { Attack, WatchedReplica } from './attack.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

const PROBES: ReadonlySet<string> = new Set(['GET /v1/models HTTP/1.1', 'GET /health HTTP/1.1']);

/** What a replica does for one request. */
type Conduct = Pick<Attack, 'replica' | 'onHead' | 'onRequest' | 'onConnection'>;

/** A replica on a bare socket. It keeps the request lines that it sees, by a parser that knows lengths only. */
export interface RawReplica extends AsyncDisposable, WatchedReplica {
  readonly url: string;
  /** The request lines, and whatever else came, in order. */
  readonly seen: string[];
  /** What it does for the next request; the others get an answer. */
  actOnce(attack: Conduct): void;
}

/** Starts it on a free port. `accept`: makes of a connection what requests are read from. */
export async function startRawReplica(
  protocol: 'http' | 'https' = 'http',
  accept: NonNullable<Attack['onConnection']> = (socket) => socket,
): Promise<RawReplica> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const closings = new EventLog<null>();
  const hostile: Socket[] = [];
  let next: Conduct = {};
  let onConnection = accept;
  const server = createServer((tcp) => {
    sockets.add(tcp);
    tcp.on('error', () => undefined);
    tcp.once('close', () => {
      sockets.delete(tcp);
      closings.push(null);
    });
    const socket = onConnection(tcp);
    if (socket === null) return;
    socket.on('error', () => undefined);
    let text = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      const [firstLine = ''] = piece.split('\r\n', 1);
      if (next.onRequest !== undefined && !PROBES.has(firstLine)) {
        const { onRequest } = next;
        next = {};
        seen.push(firstLine);
        socket.removeAllListeners('data').pause().unshift(piece, 'latin1');
        hostile.push(socket);
        onRequest(socket);
        return;
      }
      text += piece;
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        const line = head.split('\r\n')[0] ?? '';
        // The gateway asks by itself a replica that did not answer.
        if (PROBES.has(line)) {
          text = text.slice(end + 4);
          socket.write(ANSWER);
          continue;
        }
        if (next.onHead !== undefined) {
          const { onHead } = next;
          next = {};
          seen.push(line);
          hostile.push(socket);
          socket.removeAllListeners('data');
          onHead(socket);
          return;
        }
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        text = text.slice(end + 4 + length);
        seen.push(line);
        const { replica: act } = next;
        next = {};
        if (act === undefined) socket.write(ANSWER);
        else {
          hostile.push(socket);
          act(socket);
        }
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    actOnce(attack) {
      hostile.length = 0;
      next = attack;
      onConnection = attack.onConnection ?? accept;
      if (attack.onConnection !== undefined) for (const socket of sockets) socket.destroy();
    },
    untilReplicaClosed: () =>
      closings.until(() => hostile.length > 0 && hostile.every(({ destroyed }) => destroyed)),
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
