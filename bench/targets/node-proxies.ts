import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE } from '../workspace.ts';
import type { Target } from './target.ts';

const NPM = join(CACHE, 'npm');
const PEERS = join(import.meta.dirname, '../peers');

const findPackageObstacle = (name: string) => () =>
  existsSync(join(NPM, 'node_modules', name)) ? null : 'not installed: npm run bench -- --install';

/** node:http to node:http by pipe: the reference of every case, and the least that Node can do. */
export const nodePipe: Target = {
  name: 'node-pipe',
  findObstacle: () => null,
  prepare: ({ port, replicaPorts }) => ({
    file: process.execPath,
    args: [join(PEERS, 'node-pipe.ts'), String(port), ...replicaPorts.map(String)],
  }),
};

/** https://github.com/fastify/fastify-http-proxy, as its README starts it. */
export const fastifyProxy: Target = {
  name: 'fastify-http-proxy',
  findObstacle: findPackageObstacle('@fastify/http-proxy'),
  isFor: (caseName) => caseName !== 'replicas-64',
  prepare: ({ port, replicaPorts }) => ({
    file: process.execPath,
    args: [join(PEERS, 'fastify-proxy.ts'), NPM, String(port), String(replicaPorts[0])],
  }),
};

/** https://github.com/Portkey-AI/gateway; it is told in headers where to send a request. */
export const portkey: Target = {
  name: 'portkey',
  findObstacle: findPackageObstacle('@portkey-ai/gateway'),
  isFor: (caseName) => ['plain', 'burst', 'prompt-100k', 'half-load'].includes(caseName),
  prepare: ({ port }) => ({
    file: process.execPath,
    args: [
      join(NPM, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
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
