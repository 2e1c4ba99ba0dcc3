import http from 'node:http';
import type net from 'node:net';
import { createSocket, simulateListening } from './net-module.ts';
import type { CurrentThread, SimulatedThread } from './thread.ts';

/** So rarely that it never happens: Node's check of slow connections runs on a timer that cannot be replaced. */
const NEVER_MS = 2 ** 31 - 1;

/** `node:http` of the threads that run one copy of the code: Node's own client and server on simulated sockets. */
export function createHttpModule(current: CurrentThread): typeof http {
  const connect = (options: net.NetConnectOpts) => createSocket(current(), options).connect(options);

  class Agent extends http.Agent {
    override createConnection(options: http.ClientRequestArgs): net.Socket {
      return connect(options as net.NetConnectOpts);
    }
  }

  const agents = new WeakMap<SimulatedThread, Agent>();
  const globalAgentOf = (thread: SimulatedThread) => {
    const agent = agents.get(thread) ?? new Agent();
    agents.set(thread, agent);
    return agent;
  };
  const request = (url: URL, options: http.RequestOptions, done?: (response: http.IncomingMessage) => void) =>
    http.request(url, { agent: globalAgentOf(current()), ...options }, done);
  return {
    ...http,
    Agent,
    get globalAgent() {
      return globalAgentOf(current());
    },
    request,
    createServer: (options: http.ServerOptions) =>
      simulateListening(http.createServer({ ...options, connectionsCheckingInterval: NEVER_MS }), current()),
  } as unknown as typeof http;
}
