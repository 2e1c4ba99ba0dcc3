import { createServer } from 'node:http';
import { type Dispatcher, Pool } from 'undici';

/**
 * A server of node:http that dispatches with undici, body by body, and reads and records nothing:
 * `node node-dispatch.ts PORT REPLICA_PORT …`.
 */

const [port, ...replicaPorts] = process.argv.slice(2).map(Number);
const pools = replicaPorts.map(
  (replicaPort) =>
    new Pool(`http://127.0.0.1:${replicaPort}`, { connections: null, headersTimeout: 0, bodyTimeout: 0 }),
);
let turn = 0;

const server = createServer((incoming, outgoing) => {
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      outgoing.once('close', () => {
        if (!outgoing.writableFinished) controller.abort(new Error('the client left'));
      });
    },
    onResponseStart: (_controller, statusCode, headers) => void outgoing.writeHead(statusCode, headers),
    onResponseData: (_controller, chunk) => void outgoing.write(chunk),
    onResponseEnd: () => void outgoing.end(),
    onResponseError: () => void outgoing.destroy(),
  };
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    const [only] = chunks;
    const body = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
    const headers = { 'content-type': incoming.headers['content-type'] ?? 'application/json' };
    const pool = pools[turn++ % pools.length];
    pool?.dispatch({ method: 'POST', path: incoming.url ?? '/', headers, body }, handler);
  });
});
server.keepAliveTimeout = 75_000; // as the gateway: idle connections are measured, too
server.listen(port, '127.0.0.1', 4096);
