import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type Config, factsAt } from './schema.ts';
import { showValue, toKeyPath } from './shown-value.ts';
import { TakenClients } from './validation/taken-clients.ts';
import { validateClient } from './validation/validate.ts';
import { isObject, type Violation } from './validation/violation.ts';
import { readYaml } from './yaml/yaml-source.ts';

/** 1 MiB of YAML takes a second to read, 20 MiB more than a minute; JSON lines take 5 µs each. */
const MAX_YAML_CHARS = 1024 ** 2;

/** So many entries take a few milliseconds, in which the thread does nothing else. */
const ENTRIES_PER_TURN = 500;

/** Further problems are not looked for. */
const MAX_PROBLEMS = 20;

type ApiClient = NonNullable<Config['clients']>[number];

/** One entry of the file as plain data. */
interface Entry {
  readonly value: unknown;
  readonly lineOf: (path: readonly PropertyKey[]) => number;
}

/**
 * Parses a file of clients: JSON lines if its first character is `{`, else a list in YAML. The entries are those of
 * `clients`, without variables. Rejects with a ConfigError. Lets the event loop run in between.
 *
 * @param others the clients of the configuration, which are in force, too: names and keys are unique in all
 */
export async function parseClientsFile(
  text: string,
  path: string,
  others: readonly ApiClient[],
): Promise<readonly ApiClient[]> {
  const taken = new TakenClients();
  for (const [index, { name, keySha256 }] of others.entries()) {
    taken.take(name, keySha256, `clients[${index}] of the configuration`);
  }
  const clients: ApiClient[] = [];
  const problems: ConfigProblem[] = [];
  let count = 0;
  for (const entry of toEntries(text, path)) {
    count += 1;
    if (count % ENTRIES_PER_TURN === 0) await nextTurn();
    if (entry === null) continue;
    const checked = checkEntry(entry, taken);
    if ('client' in checked) clients.push(checked.client);
    else problems.push(...checked.problems);
    if (problems.length >= MAX_PROBLEMS) break;
  }
  if (problems.length > 0) throw new ConfigError(path, problems);
  return clients;
}

function checkEntry(
  { value, lineOf }: Entry,
  taken: TakenClients,
): { readonly client: ApiClient } | { readonly problems: readonly ConfigProblem[] } {
  const checked = validateClient(value);
  if ('violations' in checked) {
    return { problems: checked.violations.map((violation) => toProblem(violation, value, lineOf)) };
  }
  const { client } = checked;
  const repeated = taken.take(client.name, client.keySha256, `line ${lineOf([])}`);
  if (repeated.length === 0) return { client };
  return {
    problems: repeated.map(({ key, message }) => ({ line: lineOf([key]), keyPath: key, text: message })),
  };
}

function toProblem(violation: Violation, value: unknown, lineOf: Entry['lineOf']): ConfigProblem {
  // Without `clients` and the index.
  const path = violation.path.slice(2);
  const place = { line: lineOf(path), keyPath: toKeyPath(path) };
  if ('message' in violation) return { ...place, text: violation.message };
  const found = path.reduce<unknown>((at, step) => (isObject(at) ? at[String(step)] : undefined), value);
  return {
    ...place,
    text: `found ${showValue(found, factsAt(violation.path))}, expected ${violation.expected}`,
  };
}

/** Null for an empty line. */
function toEntries(text: string, path: string): Iterable<Entry | null> {
  const given = text.replace(/^\uFEFF/, '');
  return /^\s*\{/.test(given) ? readJsonLines(given, path) : readYamlList(given, path);
}

/** One line at a time: a list of all lines would take many times the memory of the text. */
function* readJsonLines(text: string, path: string): Iterable<Entry | null> {
  let number = 0;
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found === -1 ? text.length : found;
    const line = text.slice(start, end);
    const at = ++number;
    yield line.trim() === '' ? null : { value: parseLine(line, at, path), lineOf: () => at };
    start = end + 1;
  }
}

/** V8 quotes the text in its messages. */
function parseLine(line: string, number: number, path: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw refusal(path, 'not a JSON object in one line', number);
  }
}

function readYamlList(text: string, path: string): readonly Entry[] {
  if (text.trim() === '') throw refusal(path, 'the file is empty, expected a list of clients; [] has none');
  if (text.length > MAX_YAML_CHARS) throw refusal(path, 'more than 1 MiB of YAML: write JSON lines instead');
  const { data, places, problems } = readYaml(text, null);
  if (problems.length > 0) throw new ConfigError(path, problems);
  if (!Array.isArray(data)) throw refusal(path, 'expected a list of clients, or JSON lines');
  return data.map((value, index) => {
    const lineOf: Entry['lineOf'] = (keys) => {
      const lines = [keys, []].map((at) => places.get(toKeyPath([index, ...at]))?.line);
      return lines.find((line) => line !== undefined) ?? 1;
    };
    return { value, lineOf };
  });
}

function refusal(path: string, text: string, line = 1): ConfigError {
  return new ConfigError(path, [{ line, keyPath: '', text }]);
}
