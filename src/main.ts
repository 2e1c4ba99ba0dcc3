#!/usr/bin/env node
import { writeSync } from 'node:fs';

/*
 * The only file that uses `process`; a worker's thread has its own. Before the version check this file imports only
 * node: modules, so that an old Node prints one clear line instead of a syntax error.
 */

/** By default Node opens a debugger on SIGUSR1: anyone who reaches 127.0.0.1 could read the admin token. */
process.on('SIGUSR1', ignore);

const OLDEST_NODE = 24;
const SAME_SIGNAL_MS = 1_000; // process groups and npm deliver one signal twice
/** A SIGUSR1 that arrived before this file ran has opened its debugger long before this time is up. */
const INSPECTOR_WATCH_MS = 10_000;
const INSPECTOR_CHECK_INTERVAL_MS = 20;
/** Covers cutting the requests, `shutdown.flush` (at most 5 s here) and the spool (10 s), with a margin. */
const CRASH_CLEANUP_MS = 25_000;

/** By default these end the process at once, with its requests and records. No operator intends that. */
const IGNORED_SIGNALS = ['SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGIO', 'SIGSTKFLT'] as const;
/** SIGXCPU: the CPU time limit is reached. SIGPWR: the power is about to fail. */
const SHUTDOWN_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGXCPU', 'SIGPWR'] as const;

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  writeSync(2, `gateway: Node.js ${OLDEST_NODE} or later is needed; this is ${process.versions.node}\n`);
  process.exit(1);
}

/** Whether this process serves as the gateway. Any signal may end another sub-command. */
const isServing = process.argv[2]?.startsWith('-') !== false || process.argv[2] === 'serve';
const hangups = createHangups();

if (isServing) {
  hangups.hold();
  for (const signal of IGNORED_SIGNALS) process.on(signal, ignore);
}
await closeUnrequestedInspector();

// A reader that closes the pipe (`gateway check | head -1`) is not a failure. No output is worth the requests of a gateway.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && !isServing) throw error;
  });
}

const { toLoggableError } = await import('#cli');

const crash = createCrashHandler();
process.on('uncaughtException', (error) => crash.end(error, 'uncaught exception'));
process.on('unhandledRejection', (reason) => crash.end(reason, 'unhandled rejection'));

const shutdown = createShutdown();

const { run } = await import('#cli');
const { LogOutput, toLogTarget } = await import('#cli');
const log = new LogOutput(toLogTarget(process.stdout, 1), writeToStderr);
crash.sayWith((err, msg) => log.toLine('fatal', { err }, msg));
try {
  const exitCode = await run({
    args: process.argv.slice(2),
    env: process.env,
    nodeVersion: process.versions.node,
    pid: process.pid,
    stdin: {
      [Symbol.asyncIterator]: () => process.stdin[Symbol.asyncIterator](),
      get setRawMode() {
        const { isTTY, setRawMode } = process.stdin;
        return isTTY ? setRawMode.bind(process.stdin) : undefined;
      },
    },
    stdout: isServing ? log : process.stdout,
    stderr: process.stderr,
    signals: {
      get shutdown() {
        return shutdown.signal();
      },
      onHangup: hangups.listen,
      onCrash: crash.cleanUpWith,
      sendToGroup,
    },
  });
  // A gateway that has stopped does not wait for whoever reads its log.
  if (!isServing) await Promise.all([process.stdout, process.stderr].map(untilWritten));
  // Open handles must not keep a finished process alive.
  if (!crash.hasBegun()) process.exit(exitCode);
} catch (error) {
  crash.end(error, 'unexpected error');
}

/** Resolves when the reader of a pipe has taken everything, or has closed it: exiting earlier would cut the output. */
function untilWritten(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once('close', resolve);
    stream.write('', () => resolve());
  });
}

/** SIGHUP. `hold` remembers one that arrives early; `listen` delivers it. */
function createHangups() {
  let isPending = false;
  const note = () => {
    isPending = true;
  };
  return {
    hold: () => void process.on('SIGHUP', note),
    listen(listener: () => void): void {
      process.on('SIGHUP', listener);
      process.off('SIGHUP', note);
      if (isPending) listener();
    },
  };
}

/**
 * Ends the process after an error that nobody caught, because its state is unknown from then on. Logs the stack frames
 * without the message, which may quote a request, and runs the clean-up. Later errors are ignored.
 */
function createCrashHandler() {
  let cleanUp = async (): Promise<unknown> => undefined;
  let toLine = (err: object, msg: string): string =>
    `${JSON.stringify({ level: 'fatal', time: new Date().toISOString(), err, msg })}\n`;
  let hasBegun = false;
  return {
    hasBegun: () => hasBegun,
    /** From now on the line has the format of the log. */
    sayWith(say: typeof toLine): void {
      toLine = say;
    },
    cleanUpWith(work: () => Promise<unknown>): void {
      cleanUp = work;
    },
    end(error: unknown, msg: string): void {
      if (hasBegun) return;
      hasBegun = true;
      writeToStderr(toLine(toLoggableError(error), msg));
      const exit = () => process.exit(1);
      setTimeout(exit, CRASH_CLEANUP_MS);
      cleanUp().then(exit, exit);
    },
  };
}

/**
 * Takes over the signals that shut down when the AbortSignal is first read; the first of them aborts it. One that comes
 * more than SAME_SIGNAL_MS later ends the process at once.
 */
function createShutdown() {
  let started: AbortSignal | null = null;
  function start(): AbortSignal {
    const controller = new AbortController();
    let firstAtMs: number | null = null;
    const onSignal = () => {
      const nowMs = performance.now();
      firstAtMs ??= nowMs;
      if (nowMs - firstAtMs >= SAME_SIGNAL_MS) process.exit(1);
      controller.abort();
    };
    for (const signal of SHUTDOWN_SIGNALS) process.on(signal, onSignal);
    return controller.signal;
  }
  return {
    signal(): AbortSignal {
      started ??= start();
      return started;
    },
  };
}

/**
 * Closes the debugger of a SIGUSR1 that arrived before this file ran: Node may open it later, and more than once. A
 * debugger that the command line asks for stays open.
 */
async function closeUnrequestedInspector(): Promise<void> {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (!process.features.inspector || /--inspect(?!-port|-publish)/.test(options)) return;
  const inspector = await import('node:inspector');
  const check = () => {
    if (inspector.url() !== undefined) inspector.close();
  };
  check();
  const checks = setInterval(check, INSPECTOR_CHECK_INTERVAL_MS).unref();
  setTimeout(() => clearInterval(checks), INSPECTOR_WATCH_MS).unref();
}

function sendToGroup(groupId: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(-groupId, signal);
  } catch {
    return false; // it has ended, or is one of somebody else by now
  }
}

/** Writes at once, if somebody takes it. */
function writeToStderr(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // Standard error is closed, full, or has a reader that reads nothing.
  }
}

function ignore(): void {}
