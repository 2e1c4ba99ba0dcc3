import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { EventLog } from '../event-log.ts';

/** A behaviour of a connection for which no client should wait. It starts when a request has begun, or at once. */
export interface Fault {
  readonly name: string;
  readonly when: 'connected' | 'asked';
  readonly act: (socket: Socket) => void;
}

/** Writes the text again and again until the connection closes. */
const repeating = (text: string, everyMs: number) => (socket: Socket) => {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.once('close', () => clearInterval(timer));
};

const CHUNKED = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
/** A SETTINGS frame, with which a server that speaks only HTTP/2 begins. */
const HTTP2_SETTINGS = Buffer.from('000000040000000000', 'hex');

const asked = (name: string, act: Fault['act']): Fault => ({ name, when: 'asked', act });

/** Accepts the connection and does nothing. */
export const SAYS_NOTHING = asked('says nothing', () => undefined);

/** All known ways in which a call never ends, or ends without an answer. */
export const FAULTS: readonly Fault[] = [
  SAYS_NOTHING,
  asked('upgrades the connection', (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  }),
  asked('upgrades the connection, with bytes that follow', (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
    socket.write(HTTP2_SETTINGS);
  }),
  asked('says 103 without end', repeating('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20), 1)),
  asked('says 100 now and then', repeating('HTTP/1.1 100 Continue\r\n\r\n', 40)),
  asked('begins a head and stops', (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-')),
  asked('has a head without end', repeating('HTTP/1.1 200 OK\r\nA: b\r\n', 5)),
  asked('sends a head and stops', (socket) => void socket.write(CHUNKED)),
  asked('announces more than it sends', (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}');
  }),
  asked('has a body that trickles', (socket) => {
    socket.write(CHUNKED);
    repeating('1\r\n \r\n', 5)(socket);
  }),
  asked('ends the connection', (socket) => void socket.end()),
  asked('ends the connection in the head', (socket) => void socket.end('HTTP/1.1 200 OK\r\n')),
  asked('ends the connection in the body', (socket) => void socket.end(`${CHUNKED}5\r\n{`)),
  asked('resets the connection', (socket) => void socket.resetAndDestroy()),
  asked('speaks HTTP/2', (socket) => void socket.write(HTTP2_SETTINGS)),
  asked('speaks something else', (socket) => void socket.write('SSH-2.0-x\r\n')),
  { name: 'ends the connection at once', when: 'connected', act: (socket) => void socket.end() },
  {
    name: 'answers before it is asked',
    when: 'connected',
    act: (socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'),
  },
  { name: 'reads nothing', when: 'connected', act: (socket) => void socket.pause() },
];

/** A TCP server with a fault until it is mended; then it is an HTTP server. */
export interface FaultyServer extends AsyncDisposable {
  readonly url: string;
  /** Resolves when at least this many connections have met the fault. */
  untilMet(count: number): Promise<void>;
  /** Resolves when all connections that met the fault are closed. */
  untilLetGo(): Promise<void>;
  /** Serves HTTP on new connections. */
  mend(): void;
}

/** Starts a server with this fault on a free port. */
export async function startFaultyServer(fault: Fault, onRequest: RequestListener): Promise<FaultyServer> {
  const faulty = new EventLog<Socket>();
  const sockets = new Set<Socket>();
  const http = createHttpServer(onRequest);
  let isMended = false;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    if (isMended) {
      http.emit('connection', socket);
      return;
    }
    socket.once('close', () => faulty.wake());
    if (fault.when === 'connected') {
      socket.resume();
      fault.act(socket);
    } else {
      socket.once('data', () => fault.act(socket)).resume();
    }
    faulty.push(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    untilMet: async (count) => void (await faulty.count(count)),
    async untilLetGo() {
      // A paused socket does not notice that the other side has closed.
      for (const socket of faulty.items) socket.resume();
      await faulty.until(() => faulty.items.every(({ destroyed }) => destroyed));
    },
    mend() {
      isMended = true;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      http.close();
      await once(server, 'close');
    },
  };
}
