import { createRequire } from 'node:module';
import { join } from 'node:path';

/** `node fastify-proxy.ts FOLDER PORT REPLICA_PORT`: @fastify/http-proxy from FOLDER's node_modules. */

const [folder = '.', port, replicaPort] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const server = load('fastify')({ bodyLimit: 64 * 1024 * 1024, keepAliveTimeout: 75_000 });
server.register(load('@fastify/http-proxy'), {
  upstream: `http://127.0.0.1:${replicaPort}`,
  undici: { connections: 20_000, pipelining: 1 }, // by default 128: fewer than there are streams
});
await server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 });
