import { createHash } from 'node:crypto';
import { type Config, ConfigError, parseClientsFile } from '#config';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const PATH = '/etc/spangate/clients.jsonl';
const NAMES = ['a', 'b', 'c', 'd.e-f~g_h', '__proto__', 'constructor', '', 'é', 'a b'];
const KEYS = [
  'tenant',
  'feature',
  'models',
  'expires',
  'max_inflight',
  'requests_per_minute',
  'tokens_per_minute',
];
const WORDS = ['name', 'key_sha256', 'tennant', 'a', ...KEYS];
const VALUES: Readonly<Record<string, readonly string[]>> = {
  tenant: ['"acme"', '""', '"x\\u0000"'],
  feature: ['"search"', 'null'],
  models: ['["m"]', '["m","m"]', '[]', '"m"'],
  expires: ['"2027-01-31T00:00:00Z"', '"2027-02-31T00:00:00Z"', '"tomorrow"', '0'],
  max_inflight: ['8', '0', '-1', '1e400', '"8"'],
  requests_per_minute: ['600', '0.5', '9007199254740993'],
  tokens_per_minute: ['200000', 'null'],
};

/** The file of clients. */
export const CLIENTS: FuzzTarget = {
  name: 'clients',
  reads: 'clients_file: JSON lines, and a list in YAML',
  oracle:
    'nothing but a ConfigError, with lines that the file has; JSON.parse finds the same names and keys, which no two clients share; a list in YAML of the same entries says the same',
  variants: 2,
  ciInputs: 5_000,
  generate(random, variant) {
    const entries = Array.from({ length: random.below(5) }, (_, index) => entry(random, index));
    const text = variant === 0 ? entries.join('\n') : entries.map((each) => `- ${each}\n`).join('');
    return Buffer.from(text);
  },
  async check({ bytes, variant }) {
    const text = bytes.toString();
    const found = await parse(text);
    if (found instanceof ConfigError) {
      must(found.problems.length > 0, 'an error without a problem');
      const lineCount = text.split('\n').length;
      for (const { line } of found.problems)
        must(line >= 1 && line <= lineCount + 1, `there is no line ${line}`);
      return false;
    }
    mustBeDistinct(found);
    const isLines = /^\ufeff?\s*\{/.test(text);
    if (!isLines || variant === 1) return true;
    const given = text
      .replace(/^\ufeff/, '')
      .split('\n')
      .filter((line) => line.trim() !== '');
    const entries = given.map((line): Entry => JSON.parse(line));
    mustEqual(
      'the clients',
      found.map(({ name, keySha256 }) => [name, keySha256]),
      entries.map(({ name, key_sha256 }) => [
        name,
        [key_sha256].flat().map((digest) => digest.toLowerCase()),
      ]),
    );
    const list = await parse(entries.map((each) => `- ${JSON.stringify(each)}\n`).join(''));
    must(!(list instanceof ConfigError), 'the same entries are refused as a list in YAML');
    mustEqual('a list in YAML', list, found);
    return true;
  },
  read: ({ bytes }) => parse(bytes.toString()),
};

type Client = NonNullable<Config['clients']>[number];

interface Entry {
  readonly name: string;
  readonly key_sha256: string | readonly string[];
}

async function parse(text: string): Promise<readonly Client[] | ConfigError> {
  try {
    return await parseClientsFile(text, PATH, []);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function mustBeDistinct(clients: readonly Client[]): void {
  const digests = clients.flatMap(({ keySha256 }) => keySha256);
  must(new Set(clients.map(({ name }) => name)).size === clients.length, 'two clients have the same name');
  must(new Set(digests).size === digests.length, 'two clients have the same key');
  for (const digest of digests) must(/^[0-9a-f]{64}$/.test(digest), 'a key is no SHA-256');
  for (const { tenant, maxInflight, requestsPerMinute, tokensPerMinute } of clients) {
    must(tenant !== '', 'a tenant is empty');
    for (const limit of [maxInflight, requestsPerMinute, tokensPerMinute]) {
      must(limit === null || (Number.isSafeInteger(limit) && limit > 0), `a limit is ${limit}`);
    }
  }
}

function entry(random: Random, index: number): string {
  if (random.chance(3)) return jsonText(random, WORDS, 2);
  const name = random.chance(80) ? `client-${index}` : random.pick(NAMES);
  const digest = createHash('sha256')
    .update(random.chance(95) ? name : 'a')
    .digest('hex');
  const members = [`"name":${JSON.stringify(name)}`, `"key_sha256":${key(random, digest)}`];
  for (const each of KEYS) {
    if (random.chance(12))
      members.push(`"${each}":${random.chance(60) ? VALUES[each]?.[0] : random.pick(VALUES[each] ?? [])}`);
  }
  if (random.chance(3)) members.push(`"${random.pick(WORDS)}":${jsonText(random, WORDS, 1)}`);
  return `{${members.join(',')}}`;
}

function key(random: Random, digest: string): string {
  if (random.chance(90)) return `"${random.chance(90) ? digest : digest.toUpperCase()}"`;
  return random.pick([`["${digest}"]`, `["${digest}","${digest}"]`, '[]', `"${digest}0"`, '""', 'null']);
}
