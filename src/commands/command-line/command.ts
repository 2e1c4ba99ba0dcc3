import type { Environment } from '../../config/environment.ts';

/** Where a command writes: standard output and standard error, or a test's collector. */
export interface TextSink {
  write(text: string): unknown;
  /** Whether a person looks at it. */
  readonly isTTY?: boolean;
  /** How many characters a terminal has in a line. */
  readonly columns?: number;
  /** How many lines a terminal has. */
  readonly rows?: number;
}

/** Where a command reads: standard input, or what a test gives. */
export interface ByteSource extends AsyncIterable<Uint8Array> {
  /** Makes a terminal tell every key at once, Ctrl-C included; only a terminal has this. */
  setRawMode?(isRaw: boolean): unknown;
}

/** The signals that concern a running gateway, as src/main.ts hears them. */
export interface Signals {
  /**
   * Aborts with the first SIGINT, SIGTERM or another that ends a process: begin to shut down. Later ones are not the
   * command's business. Reading it takes these signals over: a command that never does is ended by them, as Node does
   * by itself.
   */
  readonly shutdown: AbortSignal;
  /** Calls back for each SIGHUP, from now on; it would end the process otherwise. */
  onHangup(listener: () => void): void;
  /**
   * Has this done, for some seconds, before the process ends by an error that nobody caught, and not at all when it
   * ends in another way.
   */
  onCrash(lastWork: () => Promise<unknown>): void;
}

/** What src/main.ts hands to a sub-command. */
export interface Invocation {
  /** What follows the sub-command's name. Long options have two dashes: `-config` has become `--config`. */
  readonly args: readonly string[];
  readonly env: Environment;
  /** Standard input, in the pieces it comes in; nothing is read before somebody asks. */
  readonly stdin: ByteSource;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly signals: Signals;
}

/** A sub-command: does its work and tells the exit code. Throws a UsageError, ConfigError or StartError. */
export type Command = (invocation: Invocation) => Promise<number>;

/** The command line is wrong: exit code 2. `message` is one line. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}
