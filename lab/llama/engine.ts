import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Served, untilServing } from '../served-process.ts';

/** Where the engine is kept between runs: outside the checkout. */
export const INSTALLED_IN = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'spangate',
  'llama',
);

/** Installs llama.cpp's server and its model unless they are there; the first time that takes minutes. */
export function installEngine(): void {
  if (existsSync(join(INSTALLED_IN, 'start'))) return;
  console.log(`installing llama.cpp into ${INSTALLED_IN}: about 10 minutes`);
  const { status } = spawnSync('bash', [join(import.meta.dirname, 'install.sh'), INSTALLED_IN], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the installation of llama.cpp failed');
}

/** Starts a llama.cpp server with four slots, and waits until its model is loaded. */
export async function startEngine(alias: string, options: readonly string[] = []): Promise<Served> {
  const port = await findFreePort();
  const common = ['--alias', alias, '-np', '4', '-c', '8192', '-t', '1', '--jinja', '--metrics', '--slots'];
  const child = spawn(join(INSTALLED_IN, 'start'), [String(port), ...common, ...options], {
    stdio: 'ignore',
  });
  return await untilServing(child, `http://127.0.0.1:${port}`, '/health');
}

/** Starts the gateway as an operator does, with one replica an engine, and waits until it serves. */
export async function startGatewayProcess(configPath: string, port: number): Promise<Served> {
  const main = join(import.meta.dirname, '../../src/main.ts');
  const child = spawn(process.execPath, [main, '-config', configPath], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, SVC_HASH_SALT: 'e2e' },
  });
  return await untilServing(child, `http://127.0.0.1:${port}`, '/healthz');
}

/** A port that nobody listens on. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** The engine's slots that are at work, as its /slots tells. */
export async function countBusySlots(engine: Served): Promise<number> {
  const slots = (await (await fetch(`${engine.url}/slots`)).json()) as { is_processing: boolean }[];
  return slots.filter((slot) => slot.is_processing).length;
}
