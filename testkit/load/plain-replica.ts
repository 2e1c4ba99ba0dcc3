import { createServer } from 'node:http';
import { closeServer, listen } from '../servers/local-server.ts';
import { PLAIN_ANSWER } from './plain-exchange.ts';

/** A server of this process. */
export interface PlainReplica extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

/** Starts a replica that gives every request the plain answer, and that is a collector too. */
export async function startPlainReplica(): Promise<PlainReplica> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once('end', () => {
      outgoing
        .setHeader('content-type', 'application/json')
        .end(incoming.url === '/v1/traces' ? '{}' : PLAIN_ANSWER);
    });
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, port, [Symbol.asyncDispose]: () => closeServer(server) };
}
