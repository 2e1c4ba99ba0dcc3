#!/usr/bin/env node
import { writeSync } from 'node:fs';

/*
 * The only file that touches `process`. Nothing but node: is imported before the version is checked, so that
 * an old Node says one clear line instead of a syntax error.
 */

const OLDEST_NODE = 26;
const SAME_SIGNAL_MS = 1_000; // process groups and npm deliver one signal twice

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  writeSync(2, `gateway: Node.js ${OLDEST_NODE} or later is needed; this is ${process.versions.node}\n`);
  process.exit(1);
}

// A reader that went away (`gateway check | head -1`) is no failure of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const { toLoggableError } = await import('./commands/loggable-error.ts');

/** The end of a process that cannot know its own state any more. Frames only: a message may hold a request. */
function die(error: unknown, msg: string): never {
  const line = { level: 'fatal', time: new Date().toISOString(), err: toLoggableError(error), msg };
  try {
    writeSync(2, `${JSON.stringify(line)}\n`);
  } finally {
    process.exit(1);
  }
}

process.on('uncaughtException', (error) => die(error, 'uncaught exception'));
process.on('unhandledRejection', (reason) => die(reason, 'unhandled rejection'));

/** Aborts at the first SIGINT or SIGTERM; one that comes later than its echo ends the process at once. */
function takeShutdownSignals(): AbortSignal {
  const shutdown = new AbortController();
  let firstAtMs: number | null = null;
  const hear = () => {
    const nowMs = performance.now();
    firstAtMs ??= nowMs;
    if (nowMs - firstAtMs >= SAME_SIGNAL_MS) process.exit(1);
    shutdown.abort();
  };
  process.on('SIGINT', hear);
  process.on('SIGTERM', hear);
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
      onHangup: (listener) => process.on('SIGHUP', listener),
    },
  });
  // Nothing that is left open may keep a process that has finished its work.
  process.exit(exitCode);
} catch (error) {
  die(error, 'unexpected error');
}
