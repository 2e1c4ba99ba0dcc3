/*
 * What a command is given: the one table of commands with their options, the arguments as parsed, help and
 * completions made from the table, the configuration file that a command reads.
 *
 * It never knows what a command does.
 * Begin with command-table.ts.
 */

export {
  type ByteSource,
  type Command,
  type Invocation,
  type Signals,
  type TextSink,
  UsageError,
} from './command.ts';
export type { CommandSpec, OptionSpec, Words } from './command-spec.ts';
export { COMMAND_NAMES, COMMANDS, type CommandName, isCommandName } from './command-table.ts';
export { completion } from './completion.ts';
export { findConfigPath, readConfigFile, requireConfigPath } from './config-file.ts';
export { help, toUnknownCommandError } from './help.ts';
export { GROUPINGS, REPLICA_STATES, SORT_KEYS } from './operator-commands.ts';
export { normalizeArgs, parseArguments, parseOptions } from './options.ts';
export { NotRegularError, openRegularFile } from './regular-file.ts';
export { VERDICT_MODES } from './rollout-command.ts';
