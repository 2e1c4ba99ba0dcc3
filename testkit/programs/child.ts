import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventLog } from '../event-log.ts';
import { quickStart } from '../processes/quick-start.ts';

const STOP_MS = 8_000;
const READY_MS = 60_000;
const LOG_TAIL_CHARS = 2_000;
const STDIO = { lines: 'pipe', shown: 'inherit' } as const;

/** A command to run: program, arguments and surroundings. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether `env`, PATH and Node's compile cache are the whole environment. */
  readonly isIsolated?: boolean;
  readonly cwd?: string;
}

/** Where the output of a child goes; by default stdout is discarded and stderr is that of this process. */
export interface ChildOutput {
  /** A file that stderr is appended to, and stdout by default. */
  readonly logPath?: string;
  /** `lines`: it is read line by line; `shown`: it is that of this process. */
  readonly stdout?: 'lines' | 'shown';
}

/** A process in a process group of its own. Disposing it sends SIGTERM to the group, and SIGKILL 8 s later. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  readonly hasExited: boolean;
  /** Resolves with the exit code; with null after a signal, and if the process could not be started. */
  readonly exited: Promise<number | null>;
  /** The lines of stdout so far. */
  readonly lines: readonly string[];
  /** The next line of stdout. Rejects when the process has ended instead. */
  nextLine(): Promise<string>;
  /** Reads its standard output no more, or again. */
  holdOutput(isHeld: boolean): void;
  /** Resolves with the first line from now on that is meant. Rejects when the process has ended instead. */
  untilLine(isMeant: (line: string) => boolean): Promise<string>;
  /** Signals the group; resolves as `exited`. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/** Starts a process. It ends with this one at the latest. */
export function startChild(command: Command, { logPath, stdout }: ChildOutput = {}): Child {
  const { file, args, env, isIsolated = false, cwd } = command;
  const log = logPath === undefined ? null : openSync(logPath, 'a');
  const child = spawn(file, args, {
    detached: true,
    stdio: ['ignore', stdout === undefined ? (log ?? 'ignore') : STDIO[stdout], log ?? 'inherit'],
    env: { ...(isIsolated ? { ...quickStart(), PATH: process.env.PATH } : process.env), ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (log !== null) closeSync(log);
  const kill = () => signalGroup(child, 'SIGKILL');
  process.once('exit', kill);
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', resolve).once('error', () => resolve(null));
  }).finally(() => process.off('exit', kill));
  const hasExited = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

  const lines = new EventLog<string>();
  let isAtEnd = child.stdout === null;
  let taken = 0;
  if (child.stdout !== null) {
    createInterface({ input: child.stdout })
      .on('line', (line) => lines.push(line))
      .on('close', () => {
        isAtEnd = true;
        lines.wake();
      });
  }
  const untilFound = async (find: () => string | undefined) => {
    await lines.until(() => isAtEnd || find() !== undefined);
    const line = find();
    if (line === undefined) throw new Error(`${file} ended without the expected output`);
    return line;
  };
  const end: Child['end'] = async (signal) => {
    if (!hasExited()) signalGroup(child, signal);
    return await exited;
  };
  return {
    pid: child.pid ?? 0,
    lines: lines.items,
    get hasExited() {
      return hasExited();
    },
    nextLine() {
      const position = taken++;
      return untilFound(() => lines.items[position]);
    },
    untilLine(isMeant) {
      const from = lines.items.length;
      return untilFound(() => lines.items.slice(from).find(isMeant));
    },
    holdOutput: (isHeld) => void (isHeld ? child.stdout?.pause() : child.stdout?.resume()),
    exited,
    end,
    async [Symbol.asyncDispose]() {
      const killer = setTimeout(kill, STOP_MS);
      await end('SIGTERM');
      clearTimeout(killer);
    },
  };
}

/** A child that serves HTTP. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly child: Child;
}

/** The address of a server, and a path below it that answers 200 as soon as the server is ready. */
export interface ServerAddress {
  readonly url: string;
  readonly path: string;
  /** How long it may take to start; a minute by default. */
  readonly readyMs?: number;
}

/** Starts a server and waits until it is ready. Rejects with the end of its log if it ends first or takes too long. */
export async function startServer(
  command: Command,
  { url, path, readyMs = READY_MS }: ServerAddress,
  output: ChildOutput = {},
): Promise<Server> {
  const child = startChild(command, output);
  const isReady = async () => {
    const response = await fetch(url + path).catch(() => null);
    await response?.body?.cancel();
    return response?.status === 200;
  };
  try {
    await untilReady(child, isReady, readyMs);
  } catch (error) {
    await child[Symbol.asyncDispose]();
    const tail =
      output.logPath === undefined ? '' : readFileSync(output.logPath, 'utf8').slice(-LOG_TAIL_CHARS);
    throw new Error(`${command.file} does not serve ${url}\n${tail}`, { cause: error });
  }
  return { url, child, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** Waits until a port of 127.0.0.1 accepts connections. Rejects when the child ends first or the time is up. */
export async function untilListening(child: Child, port: number, timeoutMs: number): Promise<void> {
  await untilReady(child, () => accepts(port), timeoutMs);
}

async function untilReady(child: Child, isReady: () => Promise<boolean>, timeoutMs: number): Promise<void> {
  const startedAtMs = performance.now();
  while (!(await isReady())) {
    if (child.hasExited) throw new Error('it ended instead of listening');
    if (performance.now() - startedAtMs > timeoutMs)
      throw new Error(`it was not ready within ${timeoutMs / 1000} s`);
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

/** Reaches the children of a shell wrapper or a master process, too. */
function signalGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group has ended by itself.
  }
}
