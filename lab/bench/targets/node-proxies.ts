import { join } from 'node:path';
import { findNpmObstacle, NPM_FOLDER, readNpmVersion } from '../rivals/installed.ts';
import type { Target } from './target.ts';

const PEERS = join(import.meta.dirname, '../peers');

/** A program of ../peers that needs only this Node. */
const nodePeer = (name: string): Target => ({
  name,
  findObstacle: () => null,
  readVersion: () => process.version.slice(1),
  prepare: ({ port, replicaPorts }) => ({
    file: process.execPath,
    args: [join(PEERS, `${name}.ts`), String(port), ...replicaPorts.map(String)],
  }),
});

/** node:http to node:http with pipes: the reference of most cases. */
export const nodePipe: Target = nodePeer('node-pipe');

/** node:http and undici with nothing between: the lower bound for a gateway built on them. */
export const nodeDispatch: Target = {
  ...nodePeer('node-dispatch'),
  isFor: (caseName) => ['plain', 'burst', 'half-load', 'paced-200'].includes(caseName),
};

/** The gateway's own HTTP/1.1 on sockets and nothing else: the share of HTTP in its cost. */
export const bareWire: Target = {
  ...nodePeer('bare-wire'),
  isFor: (caseName) => ['plain', 'burst', 'half-load', 'paced-200'].includes(caseName),
};

/** https://github.com/fastify/fastify-http-proxy, as its README starts it. */
export const fastifyProxy: Target = {
  name: 'fastify-http-proxy',
  findObstacle: () => findNpmObstacle('@fastify/http-proxy'),
  readVersion: () => readNpmVersion('@fastify/http-proxy'),
  isFor: (caseName) => caseName !== 'replicas-64',
  prepare: ({ port, replicaPorts }) => ({
    file: process.execPath,
    args: [join(PEERS, 'fastify-proxy.ts'), NPM_FOLDER, String(port), String(replicaPorts[0])],
  }),
};

/** https://github.com/Portkey-AI/gateway; header fields tell it where to send a request. */
export const portkey: Target = {
  name: 'portkey',
  findObstacle: () => findNpmObstacle('@portkey-ai/gateway'),
  readVersion: () => readNpmVersion('@portkey-ai/gateway'),
  isFor: (caseName) => ['plain', 'burst', 'prompt-100k', 'half-load'].includes(caseName),
  prepare: ({ port }) => ({
    file: process.execPath,
    args: [
      join(NPM_FOLDER, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
      `--port=${port}`,
      '--headless',
    ],
  }),
  toHeaders: ({ replicaPorts }) => [
    'Authorization: Bearer none',
    'x-portkey-provider: openai',
    `x-portkey-custom-host: http://127.0.0.1:${replicaPorts[0]}/v1`,
  ],
};
