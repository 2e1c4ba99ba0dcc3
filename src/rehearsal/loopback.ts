import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type Exchange, findExchange, NAME_FIELD } from './exchanges.ts';

const HOST = '127.0.0.1';
/** Where rehearsals connect and listen. */
export const ANY_PORT = { host: HOST, port: 0 } as const;

const HEAD_END = '\r\n\r\n';
const NAME = new RegExp(`^${NAME_FIELD}: *(\\S+)`, 'im');

/** What listens on loopback. */
export interface LoopbackReplica {
  readonly port: number;
  close(): void;
}

/** Starts a replica that answers rehearsed requests. Rejects with the system's error. */
export async function startReplica(): Promise<LoopbackReplica> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    let begun = '';
    socket.on('data', (chunk) => {
      begun += chunk.toString('latin1');
      if (!isWhole(begun)) return;
      const [, name] = NAME.exec(begun) ?? [];
      begun = '';
      const exchange = findExchange(name);
      if (exchange === undefined) socket.destroy();
      else socket.write(exchange.answer);
    });
  });
  server.listen(ANY_PORT);
  await once(server, 'listening');
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A client on a connection of its own. */
export class LoopbackClient implements Disposable {
  readonly #socket: Socket;
  #answer = '';
  #waiting: PromiseWithResolvers<void> | null = null;

  constructor(port: number) {
    this.#socket = connect({ host: HOST, port, noDelay: true });
    this.#socket.on('error', () => undefined);
    this.#socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    this.#socket.on('close', () => this.#waiting?.reject(new Error('the connection ended')));
  }

  /** Sends a request. Resolves when its answer is whole; rejects if it has another status than 200. */
  async exchange({ request }: Exchange): Promise<void> {
    this.#answer = '';
    this.#waiting = Promise.withResolvers();
    this.#socket.write(request);
    await this.#waiting.promise;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#answer += text;
    if (!isWhole(this.#answer)) return;
    if (this.#answer.startsWith('HTTP/1.1 200 ')) this.#waiting?.resolve();
    else this.#waiting?.reject(new Error(this.#answer.slice(0, this.#answer.indexOf('\r\n'))));
  }
}

/** Whether a message of HTTP/1.1 is whole. */
function isWhole(message: string): boolean {
  const at = message.indexOf(HEAD_END);
  if (at < 0) return false;
  const head = message.slice(0, at);
  if (/^transfer-encoding: *chunked/im.test(head)) return message.endsWith('\r\n0\r\n\r\n');
  const [, length = '0'] = /^content-length: *(\d+)/im.exec(head) ?? [];
  return message.length >= at + HEAD_END.length + Number(length);
}
