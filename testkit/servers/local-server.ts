import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';

/** Listens on this machine, by default on a free port of 127.0.0.1. Resolves with the port. */
export async function listen(server: Server, port = 0, address = '127.0.0.1'): Promise<number> {
  server.listen(port, address);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Cuts all connections and stops listening. Resolves when both are done; at once if the server does not listen. */
export async function closeServer(server: HttpServer | HttpsServer): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
