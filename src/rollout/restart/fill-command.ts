import { UsageError } from '#cli/command';
import { type FoundPlaceholder, findPlaceholders, type Place } from './find-placeholders.ts';

/** What a command may know of a replica. */
export interface CommandFacts {
  readonly name: string;
  readonly host: string;
  readonly port: string;
  readonly url: string;
}

/** The facts in the order of the positional arguments: `$1` is the name. */
const FACTS = ['name', 'host', 'port', 'url'] as const satisfies readonly (keyof CommandFacts)[];
type Fact = (typeof FACTS)[number];

/** The environment variable of each fact. */
const VARIABLES: Readonly<Record<Fact, string>> = {
  name: 'GATEWAY_REPLICA_NAME',
  host: 'GATEWAY_REPLICA_HOST',
  port: 'GATEWAY_REPLICA_PORT',
  url: 'GATEWAY_REPLICA_URL',
};

/**
 * Replaces the placeholders of a command by the shell's own words for their values, such as `"$GATEWAY_REPLICA_NAME"`: no
 * value ever becomes a part of the command. Throws a UsageError for a placeholder that does not exist, and for one that
 * does not stand in a word without quotes, because it might be code there, or be filled in wrongly.
 */
export function fillCommand(template: string): string {
  let filled = '';
  let end = 0;
  for (const found of findPlaceholders(template)) {
    const fact = FACTS.find((known) => known === found.name);
    if (fact !== undefined && found.place !== 'word') throw new UsageError(toRefusal(fact, found.place));
    // In quotes and the like, `{print}` is for the program that gets it.
    if (fact === undefined && found.place === 'word') throw new UsageError(toUnknown(found));
    if (fact === undefined) continue;
    filled += `${template.slice(end, found.start)}"$${VARIABLES[fact]}"`;
    end = found.end;
  }
  return filled + template.slice(end);
}

/** The facts of a replica that the admin API describes. */
export function toCommandFacts({ name, host, url }: Omit<CommandFacts, 'port'>): CommandFacts {
  const { port, protocol } = new URL(url);
  return { name, host, url, port: port || (protocol === 'https:' ? '443' : '80') };
}

/** The environment variables of a command. */
export function toVariables(facts: CommandFacts): Readonly<Record<string, string>> {
  return Object.fromEntries(FACTS.map((fact) => [VARIABLES[fact], facts[fact]]));
}

/** The positional arguments of a command: `$1` and so on. */
export function toPositionals(facts: CommandFacts): readonly string[] {
  return FACTS.map((fact) => facts[fact]);
}

/**
 * Says which fact no command gets, because programs could take it for an option, it holds control characters, or is no URL;
 * null if there is none.
 */
export function findUnfitFact(replica: Omit<CommandFacts, 'port'>): string | null {
  const unfit = (['name', 'host', 'url'] as const).find(
    (fact) => /^-|\p{Cc}/u.test(replica[fact]) || (fact === 'url' && !URL.canParse(replica.url)),
  );
  if (unfit === undefined) return null;
  return `its ${unfit} cannot be part of a command: ${JSON.stringify(replica[unfit]).slice(0, 200)}`;
}

function toUnknown({ name }: FoundPlaceholder): string {
  return `the command has {${name}}: there are ${FACTS.map((fact) => `{${fact}}`).join(', ')}`;
}

function toRefusal(fact: Fact, place: Exclude<Place, 'word'>): string {
  const variable = `$${VARIABLES[fact]}`;
  const positional = `$${FACTS.indexOf(fact) + 1}`;
  const word = `write "${variable}" or "${positional}"`;
  const refusals: Readonly<Record<typeof place, string>> = {
    'single quotes': `in single quotes: end them before it, as in 'a '{${fact}}' b'`,
    'double quotes': `in double quotes: write ${variable} or ${positional}`,
    'a substitution': `in a substitution: ${word}`,
    'a here-document': `in or behind a here-document: ${word}`,
    'a comment': 'in a comment: leave it out',
    unclear: `where the gateway cannot tell how the shell reads it: ${word}`,
  };
  return `the command has {${fact}} ${refusals[place]}`;
}
