import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A real Redis server, and links to it that can be cut, each on its own. */
export interface RedisServer extends AsyncDisposable {
  /** The server itself, without a link. */
  readonly url: string;
  /** Opens a new link to the server. */
  openLink(): Promise<RedisLink>;
  /** Ends the process at once; what it held is lost. Connections break. */
  kill(): Promise<void>;
  /** Starts it again, empty. */
  start(): Promise<void>;
  /** The output of redis-cli for a command. */
  command(...words: readonly string[]): Promise<string>;
}

/** A TCP proxy to the server. */
export interface RedisLink {
  /** A value for `state.redis`. */
  readonly url: string;
  /** `cut`: open and new connections break. `silent`: nothing passes any more. */
  become(state: 'whole' | 'cut' | 'silent'): void;
  /** Delays each piece from now on, in both directions. */
  delayBy(ms: number): void;
  close(): Promise<void>;
}

/** Starts a server. Rejects with a hint if redis-server is not installed. */
export async function startRedisServer(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-redis-'));
  const socketPath = join(folder, 'redis.sock');
  const links = new Set<RedisLink>();
  let process: ChildProcess | null = null;

  const server: RedisServer = {
    url: `unix://${socketPath}`,
    async openLink() {
      const link = await openLink(socketPath);
      links.add(link);
      return link;
    },
    async kill() {
      if (process === null) return;
      const exited = once(process, 'exit');
      process.kill('SIGKILL');
      await exited;
      process = null;
    },
    async start() {
      process = await spawnRedis(folder, socketPath);
    },
    command: (...words) => runCommand(socketPath, words),
    async [Symbol.asyncDispose]() {
      await server.kill();
      await Promise.all([...links].map((link) => link.close()));
      await rm(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

/** A socket file instead of a port: no other process can take it between two starts. */
async function spawnRedis(folder: string, socketPath: string): Promise<ChildProcess> {
  await rm(socketPath, { force: true });
  const settings = [
    '--port',
    '0',
    '--unixsocket',
    socketPath,
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    child.once('error', () =>
      reject(new Error('no redis-server in PATH: install it (Debian: redis-server)')),
    );
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    lines.on('line', (line) => {
      if (/ready to accept connections/i.test(line)) resolve();
    });
  });
  return child;
}

async function openLink(socketPath: string): Promise<RedisLink> {
  let state: Parameters<RedisLink['become']>[0] = 'whole';
  let delayMs = 0;
  const sockets = new Set<Socket>();

  function carry(from: Socket, to: Socket): void {
    sockets.add(from);
    from.on('data', (piece) => {
      if (state === 'silent') return;
      if (delayMs > 0) setTimeout(() => to.destroyed || to.write(piece), delayMs);
      else to.write(piece);
    });
    from.on('error', () => undefined);
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  }

  const listener = createServer((client) => {
    if (state === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(socketPath);
    carry(client, upstream);
    carry(upstream, client);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    become(next) {
      state = next;
      if (next === 'cut') for (const socket of sockets) socket.destroy();
    },
    delayBy(ms) {
      delayMs = ms;
    },
    async close() {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function runCommand(socketPath: string, words: readonly string[]): Promise<string> {
  const child = spawn('redis-cli', ['-s', socketPath, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await once(child, 'close');
  return text.trim();
}
