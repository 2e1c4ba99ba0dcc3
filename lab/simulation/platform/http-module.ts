import http from 'node:http';
import type net from 'node:net';
import { createSocket, simulateListening } from './net-module.ts';
import type { SimulatedThread } from './thread.ts';

/** So rarely that it never happens: Node's check of slow connections runs on a timer that cannot be replaced. */
const NEVER_MS = 2 ** 31 - 1;

/** `node:http` of a simulated thread: Node's own client and server on simulated sockets. */
export function createHttpModule(thread: SimulatedThread): typeof http {
  const connect = (options: net.NetConnectOpts) => createSocket(thread, options).connect(options);

  class Agent extends http.Agent {
    override createConnection(options: http.ClientRequestArgs): net.Socket {
      return connect(options as net.NetConnectOpts);
    }
  }

  const globalAgent = new Agent();
  const request = (url: URL, options: http.RequestOptions, done?: (response: http.IncomingMessage) => void) =>
    http.request(url, { agent: globalAgent, ...options }, done);
  return {
    ...http,
    Agent,
    globalAgent,
    request,
    createServer: (options: http.ServerOptions) =>
      simulateListening(http.createServer({ ...options, connectionsCheckingInterval: NEVER_MS }), thread),
  } as unknown as typeof http;
}
