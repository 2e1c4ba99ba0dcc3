import net from 'node:net';
import type { Listener } from '../engine/network.ts';
import { toErrorNumber } from './stream-state.ts';
import { TcpHandle } from './tcp-handle.ts';
import type { CurrentThread, SimulatedThread } from './thread.ts';
import type { SimulatedTimeout } from './timers.ts';

interface ListenOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly reusePort?: boolean;
}

type ServerWithHandle = net.Server & {
  _handle: ListenHandle | null;
  _listen2(address: string, port: number, addressType: number, backlog: number): void;
};

/** The handle of a listening socket, for Node's own `net.Server`. */
class ListenHandle {
  /** Set by `net.Server`. */
  onconnection: ((error: number | null, handle: TcpHandle) => void) | undefined;
  readonly #thread: SimulatedThread;
  readonly #address: string;
  readonly #listener: Listener;
  readonly #release: () => void;

  constructor(thread: SimulatedThread, address: string, reusesPort: boolean, release: () => void) {
    this.#thread = thread;
    this.#address = address;
    this.#release = release;
    this.#listener = {
      owner: thread,
      reusesPort,
      accept: (end) => this.onconnection?.(null, new TcpHandle(thread, end)),
    };
  }

  listen(): number {
    const error = this.#thread.machine.network.listen(this.#address, this.#listener);
    return error === null ? 0 : toErrorNumber(error);
  }

  close(done?: () => void): void {
    this.#thread.machine.network.stopListening(this.#address, this.#listener);
    this.#release();
    this.#thread.later('close', 0, () => done?.());
  }

  getsockname(out: Record<string, unknown>): number {
    const [address, port] = this.#address.split(':');
    Object.assign(out, { address, port: Number(port), family: 'IPv4' });
    return 0;
  }

  getAsyncId(): number {
    return 0;
  }

  ref(): void {}

  unref(): void {}
}

/** `node:net` of the threads that run one copy of the code: Node's own sockets and servers on simulated handles. */
export function createNetModule(current: CurrentThread): typeof net {
  const connect = (...args: readonly unknown[]) => {
    const options = toConnectOptions(args);
    const callback = args.find((each) => typeof each === 'function') as (() => void) | undefined;
    return createSocket(current(), options).connect(options as net.NetConnectOpts, callback);
  };
  return {
    ...net,
    connect,
    createConnection: connect,
    createServer: (...args: Parameters<typeof net.createServer>) =>
      simulateListening(net.createServer(...args), current()),
  } as unknown as typeof net;
}

function toConnectOptions(args: readonly unknown[]): object {
  const [first, second] = args;
  if (typeof first === 'object' && first !== null) return first;
  return { port: Number(first), host: typeof second === 'string' ? second : '127.0.0.1' };
}

/** A socket that is not connected yet. */
export function createSocket(thread: SimulatedThread, options: object): net.Socket {
  const handle = new TcpHandle(thread);
  // Without manualStart it would read before it is connected.
  const socket = new net.Socket({
    ...options,
    handle,
    manualStart: true,
  } as unknown as net.SocketConstructorOpts);
  return simulateTimeout(socket, thread);
}

/** Makes a server of Node listen in the simulated network. */
export function simulateListening<T extends net.Server>(server: T, thread: SimulatedThread): T {
  const { machine } = thread;
  const simulated = server as unknown as ServerWithHandle;
  const listen = (...args: readonly unknown[]) => {
    const { host = '0.0.0.0', port = 0, path, reusePort = false } = toListenOptions(args);
    const callback = args.find((each) => typeof each === 'function') as (() => void) | undefined;
    if (callback !== undefined) server.once('listening', callback);
    if (path === undefined) {
      const bound = port === 0 ? machine.network.freePort() : port;
      const address = `${host === '0.0.0.0' ? machine.host : host}:${bound}`;
      simulated._handle = new ListenHandle(thread, address, reusePort, () => undefined);
      simulated._listen2(host, bound, 4, 511);
    } else {
      const { address, release } = machine.createSocketFile(path);
      simulated._handle = new ListenHandle(thread, address, false, release);
      simulated._listen2(path, -1, -1, 511);
    }
    return server;
  };
  Object.assign(server, { listen });
  server.prependListener('connection', (socket: net.Socket) => simulateTimeout(socket, thread));
  thread.servers.add(server);
  server.once('close', () => thread.servers.delete(server));
  return server;
}

function toListenOptions(args: readonly unknown[]): ListenOptions {
  const [first, second] = args;
  if (typeof first === 'object' && first !== null) return first as ListenOptions;
  return { port: Number(first), ...(typeof second === 'string' ? { host: second } : {}) };
}

/** The time-out of an idle socket, in simulated time. Node's own runs on timers that cannot be replaced. */
function simulateTimeout(socket: net.Socket, thread: SimulatedThread): net.Socket {
  let timer: SimulatedTimeout | null = null;
  const setTimeout = (ms: number, callback?: () => void) => {
    timer?.close();
    timer = null;
    Object.assign(socket, { timeout: ms });
    if (callback !== undefined && ms === 0) socket.removeListener('timeout', callback);
    else if (callback !== undefined) socket.once('timeout', callback);
    if (ms > 0) timer = thread.timers.setTimeout(() => socket.emit('timeout'), ms);
    return socket;
  };
  // Node calls it with each read and write.
  Object.assign(socket, { setTimeout, _unrefTimer: () => timer?.refresh() });
  thread.sockets.add(socket);
  socket.once('close', () => {
    thread.sockets.delete(socket);
    timer?.close();
  });
  return socket;
}
