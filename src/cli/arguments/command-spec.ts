/** One option of a command: what parseArgs needs to know, and what people and shells are told. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** The name of its value in the help, such as `FILE`. A flag has none. */
  readonly value?: string;
  /** What it does: a phrase without a full stop, with the default. */
  readonly help: string;
  /** What a shell completes its value with. None: file names. */
  readonly words?: Words;
}

/** The words that a shell offers: a list, or the names that the running gateway knows. */
export type Words = readonly string[] | 'replica' | 'gateway' | 'command';

/** What a command expects besides its options. */
export interface ArgumentSpec {
  /** Its name in the help, such as `NAME`. */
  readonly name: string;
  readonly help: string;
  readonly isOptional?: boolean;
  readonly isRepeatable?: boolean;
  /** What a shell completes it with. None: file names. */
  readonly words?: Words;
}

/** A command line that works, and what it does. */
export interface Example {
  readonly line: string;
  readonly does: string;
}

/** One row of the table of commands. Help, suggestions, completions and docs/cli.md are made from it. */
export interface CommandSpec {
  readonly group: CommandGroup;
  /** What it does: a phrase without a full stop. */
  readonly summary: string;
  /** Paragraphs below the summary. */
  readonly details?: readonly string[];
  readonly argument?: ArgumentSpec;
  readonly options: Readonly<Record<string, OptionSpec>>;
  readonly examples: readonly Example[];
}

/** The groups of commands in the help, in their order. */
export const COMMAND_GROUPS = [
  'Serve',
  'Look at a running gateway',
  'Change a running gateway',
  'Try, simulate, replay',
  'Check what was recorded',
  'About this program',
] as const;

/** The heading that a command is listed under. */
export type CommandGroup = (typeof COMMAND_GROUPS)[number];
