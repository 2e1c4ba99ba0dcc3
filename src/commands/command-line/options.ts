import { parseArgs } from 'node:util';
import { UsageError } from './command.ts';

/** Replaces `-config F` and `-config=F`, which the contract requires, by the long form that parseArgs knows. */
export function normalizeArgs(args: readonly string[]): string[] {
  return args.map((arg) => arg.replace(/^-config(?==|$)/, '--config'));
}

/** The options of every command that reads a configuration file. */
export const configOption = { config: { type: 'string' } } as const;

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/**
 * Parses options and exactly the named positional arguments, in order. Throws a UsageError. `--help` is an unknown
 * option here unless `options` has it.
 */
export function parseOptions<const T extends Options>(
  args: readonly string[],
  options: T,
  names: readonly string[] = [],
) {
  const { values, positionals } = parseArguments(args, options);
  const missing = names[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing`);
  const surplus = positionals[names.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  return { values, positionals };
}

/** Parses options and any number of positional arguments. Throws a UsageError. */
export function parseArguments<const T extends Options>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

/** Keeps the first sentence of parseArgs's message; the rest is advice on quoting. */
function toUsageError(error: unknown): UsageError {
  const message = error instanceof Error ? error.message : 'invalid options';
  return new UsageError(message.split(/\n|\. To specify/, 1)[0] ?? message);
}
