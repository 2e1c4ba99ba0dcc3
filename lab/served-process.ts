import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process of ours that serves HTTP; it ends when it is disposed of. */
export interface Served extends AsyncDisposable {
  readonly url: string;
}

/** What to start, and how to tell that it serves. */
export interface ServedCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The base address, and a path below it that answers 200 as soon as the process serves. */
  readonly url: string;
  readonly path: string;
}

const PATIENCE_MS = 60_000;

/** How much of what a process said is told when it does not serve. */
const TOLD_CHARS = 2000;

/** Starts a process and waits until it serves. Rejects with what it said if it ends before, or takes a minute. */
export async function startServed({ command, args, env, url, path }: ServedCommand): Promise<Served> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-TOLD_CHARS);
  });
  return await untilServing(child, url, path).catch((error: unknown) => {
    throw new Error(`${command} does not serve:\n${said}`, { cause: error });
  });
}

/** Waits until a process serves. Rejects if it ends before, or takes a minute. */
export async function untilServing(child: ChildProcess, url: string, path: string): Promise<Served> {
  const exited = once(child, 'exit');
  const served: Served = {
    url,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < PATIENCE_MS) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const response = await fetch(url + path).catch(() => null);
    if (response?.status === 200) return served;
    await sleep(100);
  }
  await served[Symbol.asyncDispose]();
  throw new Error(`${url} did not get ready`);
}
