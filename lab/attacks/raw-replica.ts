import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { EventLog } from '#testkit/event-log.ts';
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
      text += piece;
      /** Leaves the connection to the conduct, with what was read of the request and is its to read. */
      const handOver = (line: string, unread: string) => {
        next = {};
        seen.push(line);
        hostile.push(socket);
        socket.removeAllListeners('data').pause().unshift(unread, 'latin1');
      };
      for (let end = text.indexOf('\r\n'); end !== -1; end = text.indexOf('\r\n')) {
        const line = text.slice(0, end);
        const { onRequest, onHead, replica: act } = next;
        const isProbe = PROBES.has(line);
        if (onRequest !== undefined && !isProbe) {
          handOver(line, text);
          onRequest(socket);
          return;
        }
        const headEnd = text.indexOf('\r\n\r\n');
        if (headEnd === -1) return;
        const body = text.slice(headEnd + 4);
        // The gateway asks by itself a replica that did not answer.
        if (isProbe) {
          text = body;
          socket.write(ANSWER);
          continue;
        }
        if (onHead !== undefined) {
          handOver(line, body);
          // It flows on in the next turn, unless the conduct pauses it.
          onHead(socket.resume());
          return;
        }
        const head = text.slice(0, headEnd);
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        if (body.length < length) return;
        text = body.slice(length);
        seen.push(line);
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
