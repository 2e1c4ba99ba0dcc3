/*
 * The commands: one file each. tables/ formats what they print, CSV too; serve/log/ writes the log of a gateway.
 *
 * They never reach into a gateway: they start one, or ask a running one through its admin API.
 * Begin with run.ts, which finds the command; arguments/command-table.ts names them all. Signals and crashes are handled in
 * src/main.ts.
 */

export { run } from './run.ts';
export { LogOutput, toLogTarget } from './serve/log/log-output.ts';
export { toLoggableError } from './serve/log/loggable-error.ts';
