import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { type RehearsedPlane, rehearse } from '#rehearsal';

afterEach(() => {
  vi.useRealTimers();
});

/** A plane that does with each connection what the test says, and notes what becomes of it. */
class TestPlane implements RehearsedPlane {
  readonly sockets: Socket[] = [];
  /** Resolves with the first bytes that arrive. */
  readonly reached = Promise.withResolvers<void>();
  requests = 0;
  isClosed = false;
  #server: Server | null = null;
  #replicaPort = 0;
  readonly #serve: (client: Socket, replicaPort: number) => void;

  constructor(serve: (client: Socket, replicaPort: number) => void) {
    this.#serve = serve;
  }

  async apply({ replicas }: Parameters<RehearsedPlane['apply']>[0]): Promise<void> {
    this.#replicaPort = Number(new URL(replicas[0]?.config.url ?? '').port);
  }

  async listen(address: { readonly host: string; readonly port: number }): Promise<number> {
    this.#server = createServer((client) => {
      this.sockets.push(client);
      client.on('error', () => undefined);
      client.on('data', (chunk) => {
        this.requests += chunk.toString('latin1').split('POST ').length - 1;
        this.reached.resolve();
      });
      this.#serve(client, this.#replicaPort);
    });
    this.#server.listen(address);
    await once(this.#server, 'listening');
    const bound = this.#server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : 0;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const closed = this.#server === null ? null : once(this.#server, 'close');
    this.#server?.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

it('sends a hundred requests to its own replica through the plane, and closes both', async () => {
  let replicaPort = 0;
  const plane = new TestPlane((client, port) => {
    replicaPort = port;
    const replica = connect(port, '127.0.0.1').on('error', () => undefined);
    client.pipe(replica).pipe(client);
  });
  await rehearse(plane);
  expect(plane.requests).toBe(100);
  expect(plane.isClosed).toBe(true);
  const late = connect(replicaPort, '127.0.0.1');
  await expect(once(late, 'connect')).rejects.toThrow('ECONNREFUSED');
});

it('ends, and closes the plane, when it answers with another status', async () => {
  const plane = new TestPlane((client) => {
    client.on('data', () => client.write('HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n'));
  });
  await expect(rehearse(plane)).rejects.toThrow('HTTP/1.1 429 Too Many Requests');
  expect(plane.isClosed).toBe(true);
});

it('ends, and closes the plane, when it ends the connection', async () => {
  const plane = new TestPlane((client) => client.on('data', () => client.destroy()));
  await expect(rehearse(plane)).rejects.toThrow('the connection ended');
  expect(plane.isClosed).toBe(true);
});

it('ends when its time is up, if nothing is answered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const plane = new TestPlane(() => undefined);
  const rehearsed = rehearse(plane);
  await plane.reached.promise;
  expect(plane.isClosed).toBe(false);
  vi.advanceTimersByTime(2_000);
  await expect(rehearsed).rejects.toThrow('the connection ended');
  expect(plane.isClosed).toBe(true);
});

it('closes the plane when it cannot listen', async () => {
  const plane = new TestPlane(() => undefined);
  plane.listen = () => Promise.reject(new Error('EADDRNOTAVAIL'));
  await expect(rehearse(plane)).rejects.toThrow('EADDRNOTAVAIL');
  expect(plane.isClosed).toBe(true);
});
