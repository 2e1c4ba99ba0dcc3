import { itemsOf, memberOf } from '#base/parsed';
import type { Invocation } from '#cli/command';
import type { CommandSpec, OptionSpec, Words } from './command-spec.ts';
import { COMMAND_NAMES, COMMANDS, isCommandName } from './command-table.ts';
import { normalizeArgs } from './options.ts';

/** A word that a shell offers. */
interface Candidate {
  readonly word: string;
  readonly help: string;
}

/** Nobody waits longer for a completion. */
const GATEWAY_TIMEOUT_MS = 1_000;

/** Words that a shell takes as they are. Other names are not offered. */
const PLAIN_WORD = /^[\w.@%+/=-][\w.~@%+/=-]*$/;

/**
 * `gateway __complete SHELL -- WORD...`: prints the words that may stand for the last one, which is unfinished, in the
 * form that the shell's script reads. It has no options of its own and never fails: no words are also an answer.
 */
export async function complete({ args, env, stdout }: Invocation): Promise<number> {
  const [shell = '', , ...typed] = args;
  const words = normalizeArgs(typed);
  const current = words.pop() ?? '';
  const found = await findCandidates(words, current, env);
  const matching = found.filter(({ word }) => word.startsWith(current) && PLAIN_WORD.test(word));
  for (const candidate of matching) stdout.write(`${toLine(candidate, shell, current)}\n`);
  return 0;
}

/** Bash takes the part after `=` as a word of its own. */
function toLine({ word, help }: Candidate, shell: string, current: string): string {
  switch (shell) {
    case 'zsh':
      return help === '' ? word : `${word}:${help}`;
    case 'fish':
      return help === '' ? word : `${word}\t${help}`;
    default:
      return word.slice(current.lastIndexOf('=') + 1);
  }
}

async function findCandidates(
  before: readonly string[],
  current: string,
  env: Invocation['env'],
): Promise<readonly Candidate[]> {
  const [first] = before;
  if (first === undefined && !current.startsWith('-')) return toCommands();
  const isNamed = first !== undefined && !first.startsWith('-');
  const name = isNamed ? first : 'serve';
  if (!isCommandName(name)) return [];
  const spec: CommandSpec = COMMANDS[name];
  const line = readLine(isNamed ? before.slice(1) : before, spec);
  if (line.open !== null) return await toValues(line.open.words, line, env);
  const assigned = /^--([\w-]+)=/.exec(current);
  if (assigned !== null) {
    const option = spec.options[assigned[1] ?? ''];
    const values = option === undefined ? [] : await toValues(option.words, line, env);
    return values.map(({ word, help }) => ({ word: assigned[0] + word, help }));
  }
  if (current.startsWith('-')) return toOptions(spec, line, isNamed);
  const { argument } = spec;
  if (argument === undefined || (line.arguments > 0 && argument.isRepeatable !== true)) return [];
  return await toValues(argument.words, line, env);
}

/** The words between the command and the unfinished one. */
interface TypedLine {
  /** The options that were given, with their values. */
  readonly values: ReadonlyMap<string, string>;
  readonly arguments: number;
  /** The option whose value comes next; null if none does. */
  readonly open: OptionSpec | null;
}

function readLine(words: readonly string[], { options }: CommandSpec): TypedLine {
  const values = new Map<string, string>();
  let argumentCount = 0;
  let open: { readonly name: string; readonly spec: OptionSpec } | null = null;
  for (const word of words) {
    if (open !== null) {
      values.set(open.name, word);
      open = null;
      continue;
    }
    const [, long, value] = /^--([\w-]+)(?:=(.*))?$/.exec(word) ?? [];
    const short = /^-(\w)$/.exec(word)?.[1];
    const found = Object.entries(options).find(
      ([name, spec]) => name === long || (short !== undefined && spec.short === short),
    );
    if (found === undefined) {
      if (!word.startsWith('-')) argumentCount += 1;
      continue;
    }
    const [name, spec] = found;
    values.set(name, value ?? '');
    if (spec.type === 'string' && value === undefined) open = { name, spec };
  }
  return { values, arguments: argumentCount, open: open?.spec ?? null };
}

function toCommands(): readonly Candidate[] {
  return COMMAND_NAMES.map((word) => ({ word, help: COMMANDS[word].summary }));
}

function toOptions({ options }: CommandSpec, { values }: TypedLine, isNamed: boolean): readonly Candidate[] {
  const left = Object.entries(options).filter(
    ([name, { multiple }]) => multiple === true || !values.has(name),
  );
  return [
    ...left.map(([name, { help }]) => ({ word: `--${name}`, help })),
    { word: '--help', help: 'explain the command' },
    ...(isNamed ? [] : [{ word: '--version', help: 'print the version' }]),
  ];
}

async function toValues(
  words: Words | undefined,
  { values }: TypedLine,
  env: Invocation['env'],
): Promise<readonly Candidate[]> {
  switch (words) {
    case undefined:
      return [];
    case 'command':
      return toCommands();
    case 'replica':
      return await readNames('replicas', values, env);
    case 'gateway':
      return await readNames('gateways', values, env);
    default:
      return words.map((word) => ({ word, help: '' }));
  }
}

/** Asks the gateway that the command line names. Nobody wants to read an error while completing a word. */
async function readNames(
  list: 'replicas' | 'gateways',
  values: ReadonlyMap<string, string>,
  env: Invocation['env'],
): Promise<readonly Candidate[]> {
  try {
    const { openAdmin } = await import('#cli/admin-client');
    const client = await openAdmin(Object.fromEntries(values), env);
    const answer = await client.call('GET', `/admin/${list}`, AbortSignal.timeout(GATEWAY_TIMEOUT_MS));
    return itemsOf(answer, list).map((item) => ({ word: String(memberOf(item, 'name')), help: '' }));
  } catch {
    return [];
  }
}
