import { Readable } from 'node:stream';
import type { ByteSource } from '#cli/command';
import { EventLog } from '#testkit/event-log.ts';
import { run } from '../../src/cli/run.ts';

/** The result of a command line. */
export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, as src/main.ts would, with these variables, this input and no signals. */
export async function invoke(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin: AsyncIterable<Uint8Array> = Readable.from([]),
): Promise<Outcome> {
  return await start(args, env, { stdin }).ended;
}

/** A running command line. */
export interface Started {
  /** What it has written on standard output so far. */
  readonly output: string;
  /** Resolves as soon as it has written this on standard output. */
  untilWritten(text: string): Promise<void>;
  /** Resolves with the first match as soon as standard output has one. Rejects if the command ends without it. */
  untilMatched(pattern: RegExp): Promise<RegExpExecArray>;
  /** As `untilWritten`, of standard error. */
  untilError(text: string): Promise<void>;
  /** Does what SIGINT does. */
  interrupt(): void;
  readonly ended: Promise<Outcome>;
}

/** Starts a command line as `invoke` does, on a terminal of this size if one is given. */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  {
    stdin = Readable.from([]),
    terminal,
  }: {
    readonly stdin?: ByteSource;
    readonly terminal?: { readonly columns: number; readonly rows: number };
  } = {},
): Started {
  const written = new EventLog<string>();
  const errors = new EventLog<string>();
  const stdout = {
    write: (text: string) => written.push(text),
    ...(terminal && { isTTY: true, ...terminal }),
  };
  const stderr = { write: (text: string) => errors.push(text) };
  const streams = { stdin, stdout, stderr };
  const shutdown = new AbortController();
  const signals = { shutdown: shutdown.signal, onHangup: () => {}, onCrash: () => {}, sendToGroup };
  const output = () => written.items.join('');
  let isOver = false;
  const ended = run({ args, env, nodeVersion: '26.0.0', pid: process.pid, ...streams, signals })
    .then((exitCode) => ({ exitCode, stdout: output(), stderr: errors.items.join('') }))
    .finally(() => {
      isOver = true;
      written.wake();
    });
  return {
    get output() {
      return output();
    },
    untilWritten: (text) => written.until(() => output().includes(text)),
    async untilMatched(pattern) {
      const find = () => pattern.exec(output());
      await written.until(() => isOver || find() !== null);
      const match = find();
      if (match === null) throw new Error(`the command has ended: ${errors.items.join('')}`);
      return match;
    },
    untilError: (text) => errors.until(() => errors.items.join('').includes(text)),
    interrupt: () => shutdown.abort(),
    ended,
  };
}

function sendToGroup(groupId: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  try {
    return process.kill(-groupId, signal);
  } catch {
    return false;
  }
}
