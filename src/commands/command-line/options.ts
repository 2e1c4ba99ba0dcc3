import { parseArgs } from 'node:util';
import { UsageError } from './command.ts';
import { toUsageError } from './usage-error.ts';

/** `-config F` and `-config=F`, as the contract has them, in the form that parseArgs knows. */
export function normalizeArgs(args: readonly string[]): string[] {
  return args.map((arg) => arg.replace(/^-config(?==|$)/, '--config'));
}

/** The options common to all commands that know a configuration file. */
export const configOption = { config: { type: 'string' } } as const;

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/**
 * Options and exactly the named positional arguments, in their order. Throws a UsageError. `--help` is not
 * known here: whoever picks the command answers it.
 */
export function parseOptions<const T extends Options>(
  args: readonly string[],
  options: T,
  names: readonly string[] = [],
) {
  const { values, positionals } = parseOrRefuse(args, options);
  const missing = names[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing`);
  const surplus = positionals[names.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  return { values, positionals };
}

function parseOrRefuse<const T extends Options>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}
