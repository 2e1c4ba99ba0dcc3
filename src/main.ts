#!/usr/bin/env node
import { writeSync } from 'node:fs';

/*
 * The only file that touches `process`, but for that of a worker's thread. Nothing but node: is imported before the
 * version is checked, so that an old Node says one clear line instead of a syntax error.
 */

/** Node's own answer to SIGUSR1 is a debugger for whoever can reach 127.0.0.1: it could read the admin token. */
process.on('SIGUSR1', ignore);

const OLDEST_NODE = 26;
const SAME_SIGNAL_MS = 1_000; // process groups and npm deliver one signal twice
/** A signal that came before us has done all that it does long before this is over. */
const INSPECTOR_WATCH_MS = 10_000;
const INSPECTOR_LOOK_MS = 20;
/** Cutting requests, `shutdown.flush` (5 s at most here) and the spool (10 s), with some time to spare. */
const LAST_WORK_MS = 25_000;

/** Their default is to end the process at once, with its requests and records. Nobody means that by them. */
const MEANINGLESS_SIGNALS = ['SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGIO', 'SIGSTKFLT'] as const;
/** SIGXCPU: the CPU time allowed is used up; SIGPWR: the power is about to fail. */
const SHUTDOWN_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGXCPU', 'SIGPWR'] as const;

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  writeSync(2, `gateway: Node.js ${OLDEST_NODE} or later is needed; this is ${process.versions.node}\n`);
  process.exit(1);
}

/** Whether the gateway itself is asked for: a command that is one's own to end is ended by any signal. */
const isServing = process.argv[2]?.startsWith('-') !== false;

let isHangupPending = false;
function noteHangup(): void {
  isHangupPending = true;
}

if (isServing) {
  // Nothing of ours is there to hear them yet.
  process.on('SIGHUP', noteHangup);
  for (const signal of MEANINGLESS_SIGNALS) process.on(signal, ignore);
}
await closeUnaskedInspector();

// A reader that went away (`gateway check | head -1`) is no failure of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const { toLoggableError } = await import('./commands/log/loggable-error.ts');

/** What is to be done before the process ends by an error that nobody caught. */
let lastWork = async (): Promise<unknown> => undefined;
let isDying = false;

/**
 * The end of a process that cannot know its own state any more: at once, but for its last work. Frames only: a message
 * may hold a request. What breaks while it ends is no news.
 */
function die(error: unknown, msg: string): void {
  if (isDying) return;
  isDying = true;
  const line = { level: 'fatal', time: new Date().toISOString(), err: toLoggableError(error), msg };
  try {
    writeSync(2, `${JSON.stringify(line)}\n`);
  } catch {
    // Nobody reads it.
  }
  const end = () => process.exit(1);
  setTimeout(end, LAST_WORK_MS);
  lastWork().then(end, end);
}

process.on('uncaughtException', (error) => die(error, 'uncaught exception'));
process.on('unhandledRejection', (reason) => die(reason, 'unhandled rejection'));

/** Aborts at the first signal to shut down; one that comes later than its echo ends the process at once. */
function takeShutdownSignals(): AbortSignal {
  const shutdown = new AbortController();
  let firstAtMs: number | null = null;
  const hear = () => {
    const nowMs = performance.now();
    firstAtMs ??= nowMs;
    if (nowMs - firstAtMs >= SAME_SIGNAL_MS) process.exit(1);
    shutdown.abort();
  };
  for (const signal of SHUTDOWN_SIGNALS) process.on(signal, hear);
  return shutdown.signal;
}

let shutdown: AbortSignal | null = null;

const { run } = await import('./commands/run.ts');
try {
  const exitCode = await run({
    args: process.argv.slice(2),
    env: process.env,
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    signals: {
      get shutdown() {
        shutdown ??= takeShutdownSignals();
        return shutdown;
      },
      onHangup(listener) {
        process.on('SIGHUP', listener);
        process.off('SIGHUP', noteHangup);
        if (isHangupPending) listener();
      },
      onCrash(work) {
        lastWork = work;
      },
    },
  });
  // Nothing that is left open may keep a process that has finished its work.
  if (!isDying) process.exit(exitCode);
} catch (error) {
  die(error, 'unexpected error');
}

/**
 * Closes the debugger of a SIGUSR1 that came before this file could take the signal: Node may open it, and open it
 * once more, some time later. One that was asked for on the command line stays.
 */
async function closeUnaskedInspector(): Promise<void> {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (!process.features.inspector || /--inspect(?!-port|-publish)/.test(options)) return;
  const inspector = await import('node:inspector');
  const look = () => {
    if (inspector.url() !== undefined) inspector.close();
  };
  look();
  const watch = setInterval(look, INSPECTOR_LOOK_MS).unref();
  setTimeout(() => clearInterval(watch), INSPECTOR_WATCH_MS).unref();
}

function ignore(): void {}
