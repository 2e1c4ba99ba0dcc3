import { toUpstreamBody } from '../../../../src/proxy/attempt/recorded-attempts.ts';
import type { RecordedEndpoint } from '../../../../src/proxy/endpoints/recorded-endpoint.ts';
import { findRecordedEndpoint } from '../../../../src/proxy/endpoints/table.ts';
import { Failure } from '../../../../src/proxy/failure.ts';
import { readRequestFacts } from '../../../../src/proxy/request/inspection/request-facts.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonString, jsonText } from '../../generate.ts';
import { mayBeMisread } from '../../misread-key.ts';

const WORDS = [
  ...['model', 'stream', 'stream_options', 'include_usage', 'continuous_usage_stats', 'messages', 'content'],
  ...['alias', 'target "x"', 'gpt', 'max_tokens', 'n', 'role', 'tools', 'metadata', 'a', 'prompt'],
];
const ALIASES = new Map([['alias', 'target "x"']]);
const ENDPOINTS = ['/v1/chat/completions', '/v1/completions'].flatMap(
  (path) => findRecordedEndpoint(path) ?? [],
);

/** The requests that go upstream with another model's name, or with `include_usage`. */
export const SPLICE: FuzzTarget = {
  name: 'splice',
  reads: 'requests: their facts, and what is spliced into them (model, stream_options)',
  oracle:
    'JSON.parse accepts the same objects; what goes upstream is, parsed, the request with those members set, and nothing else',
  variants: ENDPOINTS.length,
  ciInputs: 20_000,
  generate: (random) => Buffer.from(request(random)),
  check({ bytes, variant }) {
    const endpoint = ENDPOINTS[variant];
    must(endpoint !== undefined, 'no such endpoint');
    if (mayBeMisread(bytes.toString('latin1'))) return false;
    const given = parseObject(bytes);
    const facts = read(bytes, endpoint);
    if (facts === null) {
      must(given === null || bytes.length > 2048, 'a JSON object is refused');
      return false;
    }
    must(given !== null, 'what is no JSON object is accepted');
    // Of duplicates, JSON.parse has the last one: so must ours, if it is a name at all.
    if (typeof given.model === 'string') {
      mustEqual('the model', facts.model, ALIASES.get(given.model) ?? given.model);
    } else must(facts.model === null, 'a model that is no text has a name');
    for (const asksUsage of facts.model === null ? [false] : [false, true]) {
      const sent = Buffer.concat(toUpstreamBody(bytes, facts, asksUsage ? ['include_usage'] : []));
      mustEqual('what goes upstream', parseObject(sent), expectedOf(given, asksUsage));
      if (!asksUsage && facts.alias === null) must(sent.equals(bytes), 'the bytes of the client are changed');
    }
    return true;
  },
  read({ bytes, variant }) {
    const endpoint = ENDPOINTS[variant];
    must(endpoint !== undefined, 'no such endpoint');
    const facts = read(bytes, endpoint);
    return facts === null ? null : [facts, toUpstreamBody(bytes, facts, ['include_usage'])];
  },
};

/** Null: it is refused. */
function read(bytes: Buffer, endpoint: RecordedEndpoint): ReturnType<typeof readRequestFacts> | null {
  try {
    return readRequestFacts(bytes, endpoint, ALIASES);
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

function request(random: Random): string {
  const members = Array.from({ length: random.below(6) }, () => {
    const key = jsonString(random, WORDS);
    if (key === '"stream_options"' && random.chance(80)) return `${key}:${streamOptions(random)}`;
    return `${key}:${jsonText(random, WORDS, 2)}`;
  });
  if (random.chance(80)) members.push(`"model":${jsonString(random, WORDS)}`);
  if (random.chance(50)) members.unshift(`"stream_options":${streamOptions(random)}`);
  return `{${members.join(random.pick([',', ', ', '\n,']))}}`;
}

function streamOptions(random: Random): string {
  const member = () =>
    `"${random.pick(['include_usage', 'x'])}":${random.pick(['true', 'false', 'null', '1', '{}'])}`;
  return random.pick(['null', '{}', '{ }', '[]', 'true', `{${member()}}`, `{${member()},${member()} }`]);
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The request as the replica must read it. */
function expectedOf(given: JsonObject, asksUsage: boolean): JsonObject {
  const expected: Record<string, unknown> = { ...given };
  if (typeof given.model === 'string') expected.model = ALIASES.get(given.model) ?? given.model;
  if (!asksUsage) return expected;
  const { stream_options: options } = given;
  if (options === undefined || options === null) expected.stream_options = { include_usage: true };
  else if (typeof options === 'object' && !Array.isArray(options)) {
    expected.stream_options = { ...options, include_usage: true };
  }
  return expected;
}

function parseObject(bytes: Buffer): JsonObject | null {
  try {
    const value: unknown = JSON.parse(bytes.toString().replace(/^\ufeff/, ''));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : null;
  } catch {
    return null;
  }
}
