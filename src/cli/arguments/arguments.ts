/*
 * The one table of commands with their options, and what follows from it: the arguments as parsed, help, completions.
 *
 * It never knows what a command does.
 * Begin with command-table.ts.
 */

import { type Invocation, UsageError } from '#cli/command';
import { COMMAND_NAMES, COMMANDS, isCommandName } from './command-table.ts';
import { toCommandHelp, toOverviewHelp } from './help-text.ts';
import { parseOptions } from './options.ts';
import { suggest } from './suggest.ts';

export { COMMANDS, type CommandName, isCommandName } from './command-table.ts';
export { complete } from './complete.ts';
export { completion } from './completion.ts';
export { normalizeArgs, parseArguments, parseOptions } from './options.ts';

/** `gateway help [COMMAND]`: explains a command, or lists all. */
export async function help({ args, stdout }: Invocation): Promise<number> {
  const { positionals } = parseOptions(args, COMMANDS.help.options, ['[COMMAND]']);
  const [name] = positionals;
  if (name !== undefined && !isCommandName(name)) throw toUnknownCommandError(name);
  stdout.write(name === undefined ? toOverviewHelp() : toCommandHelp(name));
  return 0;
}

/** The error for a command that there is not, with the one that was probably meant. */
export function toUnknownCommandError(name: string): UsageError {
  const meant = suggest(name, COMMAND_NAMES);
  const hint = meant === null ? '' : ` (did you mean ${JSON.stringify(meant)}?)`;
  return new UsageError(`unknown command ${JSON.stringify(name.slice(0, 64))}${hint}`);
}
