import type { Random } from '../fuzz-http/random.ts';

const PATHS = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses', '/v1/messages'];

/** A request body, and the endpoint that it is for. */
export interface GeneratedBody {
  readonly path: string;
  readonly bytes: Buffer;
}

type ToValue = (random: Random) => string;

const text: ToValue = (random) =>
  random.pick(['"a"', '"b"', '"ab\\u0063"', '""', '"é 😀"', '"high"', '"\\ud800"', '"x\\ny"']);
const flag: ToValue = (random) => random.pick(['true', 'false', 'true', 'null']);
const count: ToValue = (random) => random.pick(['0', '1', '7', '4096', 'null']);
const strings: ToValue = (random) => random.pick(['"abc"', '["a","bcd"]', '[]', '[1,2]', 'null']);
const objectOf =
  (members: Readonly<Record<string, ToValue>>): ToValue =>
  (random) =>
    random.chance(6) ? 'null' : toObject(random, members, 3);
const listOf =
  (item: ToValue): ToValue =>
  (random) =>
    `[${Array.from({ length: random.below(4) }, () => item(random)).join(',')}]`;

const part = objectOf({ type: () => '"text"', text });
const content: ToValue = (random) => (random.chance(70) ? text(random) : listOf(part)(random));
const toolCalls: ToValue = (random) => random.pick(['[{"id":"c","Role":"r"}]', '[]', 'null']);
const messages = listOf(objectOf({ role: text, content, tool_calls: toolCalls }));
const effort = objectOf({ effort: text });

const MEMBERS: Readonly<Record<string, ToValue>> = {
  model: text,
  stream: flag,
  n: count,
  stream_options: objectOf({ include_usage: flag, continuous_usage_stats: flag }),
  tools: (random) => random.pick(['[{"Model":"b"}]', '[]', 'null']),
  previous_response_id: text,
  reasoning_effort: text,
  reasoning: effort,
  output_config: effort,
  conversation: objectOf({ id: text }),
  metadata: () => '{"Session_ID":"s"}',
  prompt_cache_key: text,
  max_tokens: count,
  max_completion_tokens: count,
  max_output_tokens: count,
  messages,
  prompt: strings,
  input: strings,
  instructions: text,
  system: text,
};

const REASONING: readonly string[] = ['reasoning_effort', 'reasoning', 'output_config'];

/** Names that none of the gateway's members resembles. */
const OTHER_NAMES = [
  'temperature',
  'Top_P',
  'mode',
  'models',
  'ſtop',
  'Kind',
  '',
  'mödel',
  'MODEL ',
  'model\\u0000',
];

/** A body with members that the gateway reads, some of them in another case, with escapes, or twice. */
export function generateBody(random: Random): GeneratedBody {
  const path = random.pick(PATHS);
  // Where several say how much to reason, the order of the body decides.
  const left = random.pick(REASONING);
  const members = Object.fromEntries(
    Object.entries(MEMBERS).filter(([name]) => name === left || !REASONING.includes(name)),
  );
  const object = toObject(random, members, 9);
  const body = random.chance(95) ? object.replace('{', '{"model":"a",') : object;
  const clean = body.replace(/,\}$/, '}');
  return { path, bytes: Buffer.from(random.chance(98) ? clean : damage(random, clean)) };
}

function toObject(random: Random, members: Readonly<Record<string, ToValue>>, maxMembers: number): string {
  const names = Object.keys(members);
  const texts = Array.from({ length: random.below(maxMembers + 1) }, () => {
    if (random.chance(8)) return `"${random.pick(OTHER_NAMES)}":1`;
    const name = random.pick(names);
    return `"${toKey(random, name)}"${space(random)}:${space(random)}${members[name]?.(random) ?? '1'}`;
  });
  // The first names the same member as before now and then: the last one counts.
  if (texts.length > 1 && random.chance(10)) texts.push(texts[0] ?? '');
  return `{${texts.join(`${space(random)},`)}}`;
}

const OTHER_CASES: Readonly<Record<string, string>> = { s: 'ſ', k: '\u212a', i: 'ı' };

/** The name as it is, mostly; or with letters in another case, and some as escapes. */
function toKey(random: Random, name: string): string {
  const isChanged = random.chance(12);
  const at = random.below(name.length);
  return Array.from(name, (letter, index) => {
    const isHere = isChanged && (index === at || random.chance(20));
    const other = random.chance(30) ? (OTHER_CASES[letter] ?? letter.toUpperCase()) : letter.toUpperCase();
    const written = isHere ? other : letter;
    return random.chance(2) ? `\\u${written.charCodeAt(0).toString(16).padStart(4, '0')}` : written;
  }).join('');
}

function damage(random: Random, body: string): string {
  const at = random.below(body.length + 1);
  return body.slice(0, at) + random.pick(['', '"', '{', '}', ',', '\\', '\0', '\ufeff']) + body.slice(at + 1);
}

function space(random: Random): string {
  return random.chance(95) ? '' : random.pick([' ', '\n', '\t', '\r\n']);
}
