import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chatOnce } from '#testkit/programs/chat-once.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { askVersion } from './artefacts.ts';

const run = promisify(execFile);

/** What runs programs of another processor: the words before the program. */
export interface Emulator {
  readonly prefix: readonly string[];
}

/** The emulator of a processor on this machine; if it cannot be had, what is missing, as a part of a sentence. */
export function findEmulator(processor: string): Emulator | string {
  if (processor !== 'arm64') return `no emulator of ${processor}`;
  const qemu = '/usr/bin/qemu-aarch64-static';
  const libraries = '/usr/aarch64-linux-gnu';
  const needed = ['c.so.6', 'stdc++.so.6', 'atomic.so.1'].map((name) => `${libraries}/lib/lib${name}`);
  const missing = [qemu, ...needed].find((path) => !existsSync(path));
  if (missing !== undefined) return `no ${missing}`;
  return { prefix: [qemu, '-L', libraries] };
}

/**
 * Runs an executable: its version, a check of its configuration, a request to a simulated replica, a stop. Resolves with a
 * line on each; rejects at the first that fails.
 */
export async function emulate(
  { prefix }: Emulator,
  executable: string,
  folder: string,
): Promise<readonly string[]> {
  const command = [...prefix, executable];
  const lines = [`gateway --version says ${await askVersion(command)}`];
  await mkdir(folder, { recursive: true });
  await using replica = await startSimulatedReplica({ models: ['demo'] });
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(folder, 'state'),
    replicas: [{ name: 'a', url: replica.url, models: ['demo'] }],
    export: { endpoint: 'http://127.0.0.1:9' },
    metrics: { otlp: false },
    shutdown: { delay: '0s', grace: '5s', flush: '1s' },
  };
  const path = join(folder, 'checked.yaml');
  await writeFile(path, JSON.stringify(config));
  const [file = '', ...words] = command;
  await run(file, [...words, 'check', '-config', path]);
  lines.push('gateway check accepts a configuration');
  await using gateway = await startGateway(folder, config, {}, { command });
  await chatOnce(gateway.url, 'demo');
  lines.push('a request to a simulated replica is answered with 200');
  const code = await gateway.end('SIGTERM');
  if (code !== 0) throw new Error(`after a SIGTERM the code was ${code}`);
  lines.push('a SIGTERM ends it with code 0');
  return lines;
}
