import { createServer } from 'node:net';

/**
 * Binds an address exclusively and closes it again. Returns the port, which the system picks for port 0; rejects with
 * the system's error. Listeners with SO_REUSEPORT alone would not notice that another gateway uses the port.
 */
export function findFreePort(address: { readonly host: string; readonly port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => {
      const bound = server.address();
      const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
      server.close(() => resolve(port));
    });
  });
}
