import { parseArgs } from 'node:util';
import { UsageError } from '#cli/command';
import { suggest } from './suggest.ts';

/** Replaces `-config F` and `-config=F`, which the contract requires, by the long form that parseArgs knows. */
export function normalizeArgs(args: readonly string[]): string[] {
  return args.map((arg) => arg.replace(/^-config(?==|$)/, '--config'));
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** Parses options and the named positional arguments, in order; `[NAME]` may be missing. Throws a UsageError. */
export function parseOptions<const T extends Options>(
  args: readonly string[],
  options: T,
  names: readonly string[] = [],
) {
  const { values, positionals } = parseArguments(args, options);
  const missing = names[positionals.length];
  if (missing !== undefined && !missing.startsWith('[')) throw new UsageError(`${missing} is missing`);
  const surplus = positionals[names.length];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  return { values, positionals };
}

/** Parses options and any number of positional arguments. Throws a UsageError. */
export function parseArguments<const T extends Options>(args: readonly string[], options: T) {
  refuseWrong(args, options);
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

/**
 * Throws a UsageError for the first unknown option, with the option that was probably meant, or the first that is given two
 * values: a command that asks one gateway of two would otherwise do nothing at the other.
 */
function refuseWrong(args: readonly string[], options: Options): void {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const values = new Map<string, unknown>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    // parseArgs refuses it with advice for who writes the command, not for who uses it.
    if (token.inlineValue === false && /^-./.test(token.value))
      throw new UsageError(`option '--${name}' needs a value; one that begins with '-' as '--${name}=-…'`);
    if (options[name]?.multiple !== true && values.has(name) && values.get(name) !== value)
      throw new UsageError(`option '--${name}' is given twice: this command takes one`);
    values.set(name, value);
    if (Object.hasOwn(options, name)) continue;
    const meant = name.length < 2 ? null : suggest(name, [...Object.keys(options), 'help']);
    const hint = meant === null ? '' : ` (did you mean '--${meant}'?)`;
    throw new UsageError(`unknown option '${token.rawName}'${hint}`);
  }
}

/** Keeps the first sentence of parseArgs's message; the rest is advice on quoting. */
function toUsageError(error: unknown): UsageError {
  const message = error instanceof Error ? error.message : 'invalid options';
  return new UsageError(message.split(/\n|\. To specify/, 1)[0] ?? message);
}
