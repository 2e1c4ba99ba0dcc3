import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout } from 'node:timers/promises';

const RETRY_MS = 50;

/**
 * Listens on this machine, by default on a free port of 127.0.0.1. Resolves with the port. If another server of a test that
 * runs at the same time has got a port that was free a moment ago, it listens there when that one has ended.
 */
export async function listen(server: Server, port = 0, address = '127.0.0.1'): Promise<number> {
  for (;;) {
    server.listen(port, address);
    try {
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    } catch (error) {
      if (port === 0 || !(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'))
        throw error;
      await setTimeout(RETRY_MS);
    }
  }
}

/** Cuts all connections and stops listening. Resolves when both are done; at once if the server does not listen. */
export async function closeServer(server: HttpServer | HttpsServer): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
