import { createServer, type Socket } from 'node:net';
import { EventLog } from '../event-log.ts';
import { listen } from './local-server.ts';

/** The server's side of a connection: it sends exactly the bytes it is told to. */
export interface ServerSide {
  readonly socket: Socket;
  /** Sends bytes, in latin-1. */
  write(bytes: string): void;
  /** Resolves when this text has come and was not waited for yet. */
  untilReceived(text: string): Promise<void>;
  /** Resolves when the connection is closed. */
  untilClosed(): Promise<void>;
}

/** A TCP server on a free port whose connections the test answers byte by byte. */
export interface TcpServer extends AsyncDisposable {
  readonly url: string;
  /** Resolves with the oldest connection that this has not returned yet. */
  next(): Promise<ServerSide>;
}

/** Starts a server. `readsNothing`: it takes no more bytes than the buffers of the system. */
export async function startTcpServer({ readsNothing = false } = {}): Promise<TcpServer> {
  const accepted = new EventLog<ServerSide>();
  const server = createServer((socket) => accepted.push(toServerSide(socket, readsNothing)));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    next: () => accepted.next(),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { socket } of accepted.items) socket.destroy();
      await closed;
    },
  };
}

function toServerSide(socket: Socket, readsNothing: boolean): ServerSide {
  const reads = new EventLog<Buffer>();
  let received = '';
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  if (readsNothing) socket.pause();
  else {
    socket.on('data', (read: Buffer) => {
      received += read.toString('latin1');
      reads.push(read);
    });
  }
  return {
    socket,
    write: (bytes) => void socket.write(bytes, 'latin1'),
    async untilReceived(text) {
      await reads.until(() => received.includes(text));
      received = received.slice(received.indexOf(text) + text.length);
    },
    untilClosed: () => closed,
  };
}
