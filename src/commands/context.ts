import type { Writable } from 'node:stream';

/** All that a sub-command gets from the process; only src/main.ts touches `process` itself. */
export interface CommandContext {
  /** What follows the sub-command's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Resolves at the first SIGINT or SIGTERM. */
  readonly untilSignal: Promise<void>;
}
