import { Agent, createServer, request } from 'node:http';

/**
 * A pass-through with pipes of node:http that reads and records nothing: `node node-pipe.ts PORT REPLICA_PORT …`.
 */

const [port, ...replicaPorts] = process.argv.slice(2).map(Number);
const agent = new Agent({ keepAlive: true });
let turn = 0;

const server = createServer((incoming, outgoing) => {
  const upstream = request({
    host: '127.0.0.1',
    port: replicaPorts[turn++ % replicaPorts.length],
    path: incoming.url,
    method: incoming.method,
    headers: incoming.headers,
    agent,
  });
  upstream.on('response', (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(outgoing);
  });
  upstream.on('error', () => outgoing.destroy());
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
});
server.keepAliveTimeout = 75_000; // as the gateway: idle connections are measured, too
server.listen(port, '127.0.0.1', 4096);
