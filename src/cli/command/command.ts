/*
 * What every command gets: its arguments, the environment with the configuration file, where it reads and writes, and the
 * signals of the process.
 *
 * It never knows which commands there are.
 */

import type { LoadedConfig } from '#config';
import type { Environment } from '#config/secrets';
import { UsageError } from './usage-error.ts';

export { UsageError } from './usage-error.ts';

/** Where a command writes: standard output, standard error, or a test's substitute. */
export interface TextSink {
  write(text: string): unknown;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean;
  /** The width of the terminal, in characters. */
  readonly columns?: number;
  /** The height of the terminal, in lines. */
  readonly rows?: number;
  /** The output of a log writes a few lines of its own, as JSON: from now on it formats them like this. */
  formatOwnLines?(format: (jsonLine: string) => string): void;
  /** The lines that the output of a log has lost since the start, and why it lost the last one. */
  readonly loss?: { readonly lost: number; readonly reason: string };
}

/** Where a command reads: standard input, or a test's substitute. */
export interface ByteSource extends AsyncIterable<Uint8Array> {
  /** Only a terminal has this. In raw mode it delivers every key at once, Ctrl-C included. */
  readonly setRawMode?: ((isRaw: boolean) => unknown) | undefined;
}

/** The signals that a command can react to. src/main.ts provides them. */
export interface Signals {
  /**
   * Aborts with the first signal that ends a process, such as SIGINT or SIGTERM: the command begins to shut down.
   * src/main.ts handles later ones. Reading this property takes these signals over; a command that never reads it is
   * ended by them, as Node does by default.
   */
  readonly shutdown: AbortSignal;
  /** Calls `listener` for each SIGHUP from now on. Without a listener SIGHUP ends the process. */
  onHangup(listener: () => void): void;
  /** Registers what runs before an uncaught error ends the process. It has some seconds. */
  onCrash(cleanUp: () => Promise<unknown>): void;
  /**
   * Sends a signal to all processes of a group; 0 only looks. Returns whether the group has a process that may be
   * signalled.
   */
  sendToGroup(groupId: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean;
}

/** What src/main.ts passes to a sub-command. */
export interface Invocation {
  /** The arguments after the sub-command's name. Long options have two dashes: `-config` has become `--config`. */
  readonly args: readonly string[];
  readonly env: Environment;
  /** The version of Node, such as `26.10.0`. */
  readonly nodeVersion: string;
  /** The id of the process. */
  readonly pid: number;
  /** Standard input. It is opened when the command iterates it or looks for `setRawMode`. */
  readonly stdin: ByteSource;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly signals: Signals;
}

/** A sub-command. Returns the exit code; throws a UsageError, ConfigError or StartError. */
export type Command = (invocation: Invocation) => Promise<number>;

/** Returns the path of the configuration file: the option, else SVC_CONFIG; null if neither is set. */
export function findConfigPath(option: string | undefined, env: Environment): string | null {
  if (option === '') throw new UsageError("option '--config' needs a path");
  return option ?? (env.SVC_CONFIG || null);
}

/** As `findConfigPath`, but throws a UsageError if neither is set. */
export function requireConfigPath(option: string | undefined, env: Environment): string {
  const path = findConfigPath(option, env);
  if (path === null) throw new UsageError('no configuration: give -config FILE or set SVC_CONFIG');
  return path;
}

/** Reads a configuration file. Rejects with a ConfigError, or an UnusableSettingError. */
export async function readConfigFile(path: string, env: Environment): Promise<LoadedConfig> {
  const { loadConfig } = await import('#config'); // help and version start without it
  return await loadConfig(path, env);
}
