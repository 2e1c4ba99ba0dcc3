/*
 * The one table of commands with their options, and what follows from it: the arguments as parsed, help, completions.
 *
 * It never knows what a command does.
 * Begin with command-table.ts.
 */

export { COMMANDS, type CommandName, isCommandName } from './command-table.ts';
export { complete } from './complete.ts';
export { completion } from './completion.ts';
export { help, toUnknownCommandError } from './help.ts';
export { normalizeArgs, parseArguments, parseOptions } from './options.ts';
