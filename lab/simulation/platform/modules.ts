import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire, findPackageJSON } from 'node:module';
import os from 'node:os';
import { isAbsolute } from 'node:path';
import { toUuid } from '../engine/chance.ts';
import { createFsModule, refuseUnknown } from './fs-module.ts';
import type { ThreadGlobals } from './globals.ts';
import { createHttpModule } from './http-module.ts';
import { createNetModule } from './net-module.ts';
import type { CurrentThread } from './thread.ts';
import { createWorkerModule } from './worker-module.ts';

const requireReal = createRequire(import.meta.url);

/** Modules that do nothing outside the thread, or that the program loads and does not use here. */
const REAL = new Set([
  ...['assert', 'async_hooks', 'buffer', 'console', 'diagnostics_channel', 'events', 'inspector', 'path'],
  ...[
    'querystring',
    'stream',
    'stream/promises',
    'stream/web',
    'string_decoder',
    'url',
    'util',
    'util/types',
  ],
  ...['zlib', 'tls', 'https', 'http2', 'dns', 'dns/promises', 'child_process', 'sqlite', 'sea'],
]);

/** Packages without effects and without time. All threads share them. */
export const SHARED_PACKAGES = ['zod', 'yaml', 'pino', '@grpc/grpc-js', '@grpc/proto-loader', 'protobufjs'];

/** What was required before: to find a file again takes longer than to load it. */
const required = new Map<string, unknown>();

function requireOnce(name: string): unknown {
  if (!required.has(name)) required.set(name, requireReal(name));
  return required.get(name);
}

/** The files of the dashboard are read by every gateway of every world. */
const realFiles = new Map<string, Buffer>();

/** `require` of the threads that run one copy of the code. */
export function createRequireOf(current: CurrentThread, globals: ThreadGlobals): (name: string) => unknown {
  const modules = new Map<string, unknown>();
  const create = (name: string): unknown => {
    switch (name) {
      case 'net':
        return createNetModule(current);
      case 'http':
        return createHttpModule(current);
      case 'fs/promises':
        return createFsModule(current);
      case 'fs':
        return createSourcesModule();
      case 'worker_threads':
        return createWorkerModule(current);
      case 'crypto':
        return createCryptoModule(current);
      case 'os':
        return {
          ...os,
          hostname: () => current().machine.host,
          uptime: () => current().machine.uptimeSeconds,
        };
      case 'timers':
        return { ...globals.timers };
      case 'timers/promises':
        return createTimerPromises(current);
      case 'perf_hooks':
        return { performance: globals.performance, monitorEventLoopDelay: createNoHistogram };
      case 'process':
        return globals.process;
      case 'module':
        return { createRequire: () => requireSimulated, findPackageJSON };
    }
    if (REAL.has(name)) return requireOnce(`node:${name}`);
    if (SHARED_PACKAGES.includes(name) || isAbsolute(name)) return requireOnce(name);
    throw new Error(`the simulation has no module ${name}`);
  };
  const requireSimulated = (specifier: string): unknown => {
    const name = specifier.replace(/^node:/, '');
    if (!modules.has(name)) modules.set(name, create(name));
    return modules.get(name);
  };
  return Object.assign(requireSimulated, { resolve: requireReal.resolve });
}

/** `node:fs` reads the sources, such as the page of the dashboard. */
function createSourcesModule(): object {
  return refuseUnknown(
    {
      constants: fs.constants,
      accessSync: fs.accessSync,
      existsSync: fs.existsSync,
      readdirSync: fs.readdirSync,
      readFileSync(path: string, encoding?: BufferEncoding) {
        const bytes = realFiles.get(path) ?? fs.readFileSync(path);
        realFiles.set(path, bytes);
        return encoding === undefined ? bytes : bytes.toString(encoding);
      },
      promises: {},
    },
    'node:fs',
  );
}

function createCryptoModule(current: CurrentThread): object {
  const randomBytes = (size: number) => current().chance.fill(Buffer.alloc(size));
  return {
    ...crypto,
    randomBytes,
    randomUUID: () => toUuid(randomBytes(16)),
    randomFillSync: (bytes: Uint8Array) => current().chance.fill(bytes),
    randomInt: (bound: number) => current().chance.below(bound),
    webcrypto: undefined,
  };
}

function createTimerPromises(current: CurrentThread): object {
  const sleep = (
    delayMs?: number,
    value?: unknown,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const timer = current().timers.setTimeout(() => resolve(value), delayMs);
      signal?.addEventListener(
        'abort',
        () => {
          timer.close();
          reject(signal.reason);
        },
        { once: true },
      );
    });
  const turn = (value?: unknown): Promise<unknown> =>
    new Promise((resolve) => current().timers.setImmediate(() => resolve(value)));
  return { setTimeout: sleep, setImmediate: turn, scheduler: { wait: sleep } };
}

function createNoHistogram(): object {
  const nothing = () => undefined;
  return {
    enable: nothing,
    disable: nothing,
    reset: nothing,
    percentile: () => 0,
    min: 0,
    max: 0,
    mean: 0,
    count: 0,
  };
}
