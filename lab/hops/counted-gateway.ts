import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ROOT } from '#testkit/programs/results.ts';
import type { Calls } from './calls.ts';

/** A gateway in a process that counts its calls. */
export interface CountedGateway {
  readonly child: ChildProcess;
  readonly url: string;
  /** What the gateway has run since the last time. */
  takeCalls(): Promise<Calls>;
}

/** Starts a gateway before one replica. */
export async function startCountedGateway(
  stateDir: string,
  replicaUrl: string,
  collectorUrl: string,
): Promise<CountedGateway> {
  const configPath = join(stateDir, 'gateway.yaml');
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(stateDir, 'state'),
    replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' }],
    export: { endpoint: collectorUrl, interval: '20ms' },
  };
  await writeFile(configPath, JSON.stringify(config));
  const args = [
    '--import',
    join(import.meta.dirname, 'count-calls.ts'),
    join(ROOT, 'src/main.ts'),
    '-config',
    configPath,
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], cwd: ROOT });
  const { stdout } = child;
  if (stdout === null) throw new Error('a pipe was asked for');
  const address = await readAddress(stdout);
  stdout.resume();
  return { child, url: `http://${address}`, takeCalls: () => takeCalls(child) };
}

/** The listener's address, from the log. */
async function readAddress(log: Readable): Promise<string> {
  for await (const line of createInterface({ input: log })) {
    const { msg, listen } = JSON.parse(line);
    if (msg === 'serving') return listen;
  }
  throw new Error('the gateway did not start');
}

async function takeCalls(child: ChildProcess): Promise<Calls> {
  child.send('take');
  const [calls] = await once(child, 'message');
  return calls;
}
