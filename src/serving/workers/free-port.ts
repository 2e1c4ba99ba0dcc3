import { createServer } from 'node:net';

/**
 * Binds an address alone and lets go of it again: returns the port, which is a free one for port 0. Rejects with the
 * system's error. With SO_REUSEPORT alone a port that is taken by another gateway would not be noticed.
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
