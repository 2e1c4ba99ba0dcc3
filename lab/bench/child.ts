import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const STOP_MS = 8000;

/** Every child that runs, so that none outlives the benchmark. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) signal(child, 'SIGKILL');
});
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => process.exit(1));

/** A command to run: program, arguments, and what it needs around it. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A process of ours, in a process group of its own. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Its lines on standard output; only of a child started with `readsOutput`. */
  readonly lines: AsyncIterator<string> | null;
  readonly stdin: NodeJS.WritableStream | null;
  readonly hasExited: () => boolean;
}

/**
 * Starts a process. What it says goes to the file `logPath`, standard output to `lines` instead if `readsOutput`.
 * Disposing ends its process group: SIGTERM, then SIGKILL.
 */
export function startChild(command: Command, logPath: string, readsOutput = false): Child {
  const log = openSync(logPath, 'a');
  const child = spawn(command.file, command.args, {
    detached: true,
    stdio: ['pipe', readsOutput ? 'pipe' : log, log],
    env: { ...process.env, ...command.env },
    ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child)); // seen by whoever waits for its port or its lines
  const lines = child.stdout ? createInterface(child.stdout)[Symbol.asyncIterator]() : null;
  return {
    pid: child.pid ?? 0,
    lines,
    stdin: child.stdin,
    hasExited: () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null,
    [Symbol.asyncDispose]: () => stop(child),
  };
}

/** Waits until something accepts connections on the port; throws when the process ends or the time is up. */
export async function waitForPort(child: Child, port: number, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await accepts(port))) {
    if (child.hasExited()) throw new Error('it ended instead of listening');
    if (Date.now() > deadline) throw new Error(`it did not listen within ${timeoutMs / 1000} s`);
    await sleep(50);
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return;
  const exited = once(child, 'exit');
  signal(child, 'SIGTERM');
  const killer = setTimeout(() => signal(child, 'SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(killer);
}

/** To the whole group: a shell wrapper or a master process is not all there is. */
function signal(child: ChildProcess, name: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // it has ended by itself
  }
}
