import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPrefixHasher } from '../../../src/proxy/record/prefix-hashes.ts';
import { readRequestFacts } from '../../../src/proxy/request/request-facts.ts';
import { describeRequestText } from '../../../src/proxy/request/request-text.ts';
import { endpointAt } from '../../support/response-reading.ts';

const page = readFileSync(new URL('../../../docs/record.md', import.meta.url), 'utf8');

/** The first code block of this language on the page. */
function blockOf(language: string): string {
  const found = new RegExp(`\`\`\`${language}\n(.*?)\n\`\`\``, 's').exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/record.md has no ${language} block`);
  return found;
}

interface Case {
  readonly body: string;
  /** Its path. */
  readonly endpoint: string;
  readonly salt: string;
  readonly blockChars: number;
  readonly maxBlocks: number;
}

type Description = readonly [promptChars: number | null, prefixHashes: readonly string[] | null];

function byGateway({ body, endpoint, salt, blockChars, maxBlocks }: Case): Description {
  const bytes = Buffer.from(body);
  const hasher = createPrefixHasher({ salt: Buffer.from(salt), blockChars, maxBlocks });
  const at = endpointAt(endpoint);
  const found = describeRequestText(bytes, readRequestFacts(bytes, at), at, hasher);
  return [found.promptChars ?? null, found.prefixHashes ?? null];
}

/** Runs the page's Python on all cases in one process. */
function byPython(cases: readonly Case[]): Description[] {
  const driver = `
for c in json.load(sys.stdin):
    print(json.dumps(describe(c["body"].encode(), c["endpoint"], c["salt"].encode(), c["blockChars"], c["maxBlocks"])))
`;
  const code = blockOf('python').replace(/^if __name__ ==[\s\S]*/m, '') + driver;
  const run = spawnSync('python3', ['-c', code], { input: JSON.stringify(cases), encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  return run.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Description);
}

const hasPython = spawnSync('python3', ['--version']).status === 0;

const VECTOR: Case = {
  body: blockOf('json'),
  endpoint: '/v1/chat/completions',
  salt: 'spangate test vector',
  blockChars: 16,
  maxBlocks: 128,
};

function toCase(endpoint: string, body: object | string, settings: Partial<Case> = {}): Case {
  const text = typeof body === 'string' ? body : JSON.stringify({ model: 'm', ...body });
  return { endpoint, body: text, salt: 'sält', blockChars: 8, maxBlocks: 128, ...settings };
}

const tools = [
  { type: 'function', function: { name: 'add', parameters: { type: 'object', properties: {} } } },
];
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBOR/w0'.repeat(2000)}` } };

const CASES: readonly Case[] = [
  VECTOR,
  toCase('/v1/chat/completions', {
    tools,
    messages: [{ role: 'user', content: 'Add one and two, please.' }],
  }),
  toCase('/v1/chat/completions', {
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Compare' }, image, 'with', { type: 'file', file: { file_id: 'f' } }],
      },
      {
        role: 'assistant',
        content: [{ type: 'refusal', refusal: 'No.' }],
        tool_calls: [{ id: 'c', n: 1.5 }],
      },
      { content: null, role: 'tool', tool_call_id: 'c' },
    ],
  }),
  toCase('/v1/chat/completions', {
    messages: [{ role: 'user', content: 'Grüße 😀 \ud83d \u0000 漢字'.repeat(9) }],
  }),
  toCase(
    '/v1/chat/completions',
    '{ "model":"\\ud83d", "tools" : [ 1.0,\n2 ] ,"messages":[ {"content":"a\\/b \\ud83d\\ude00" } , 7 ]}',
  ),
  toCase('/v1/chat/completions', { messages: 'text' }),
  toCase('/v1/completions', { prompt: 'Once upon a time there was' }, { maxBlocks: 2 }),
  toCase('/v1/completions', { prompt: ['Once upon', 'a time', '', 'there was'] }, { blockChars: 1 }),
  toCase('/v1/completions', { prompt: [[1, 2, 3], 'x'] }),
  toCase('/v1/completions', { prompt: [1, 2, 3] }),
  toCase('/v1/embeddings', { input: ['ein Satz', 'noch ein längerer Satz'] }, { blockChars: 3 }),
  toCase('/v1/embeddings', { input: 'short' }),
];

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\ud83d', '\ude00', '😀', '\u001e\n'),
);
const anyPart = fc.oneof(
  anyText,
  fc.record({ type: fc.constant('text'), text: anyText }),
  fc.record({ image_url: fc.oneof(anyText, fc.record({ url: fc.oneof(anyText, fc.constant(null)) })) }),
  fc.record({ file: fc.record({ file_data: anyText, file_id: anyText }, { requiredKeys: [] }) }),
  fc.record(
    { video_url: fc.record({ url: anyText }), audio_url: fc.record({ url: anyText }) },
    { requiredKeys: [] },
  ),
  fc.record({ input_audio: fc.record({ data: fc.string({ minLength: 8000, maxLength: 9000 }) }) }),
  fc.jsonValue({ maxDepth: 1 }),
);
const anyMessage = fc.oneof(
  fc.record(
    {
      role: fc.oneof(anyText, fc.constant(null)),
      content: fc.oneof(anyText, fc.array(anyPart, { maxLength: 4 }), fc.jsonValue({ maxDepth: 1 })),
      tool_calls: fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue({ maxDepth: 1 }),
);
const anyCase: fc.Arbitrary<Case> = fc
  .tuple(
    fc.oneof(
      fc.record(
        { messages: fc.array(anyMessage, { maxLength: 4 }), tools: fc.jsonValue() },
        { requiredKeys: ['messages'] },
      ),
      fc.record({ prompt: fc.oneof(anyText, fc.array(anyText), fc.jsonValue()) }),
      fc.record({ input: fc.oneof(anyText, fc.array(anyText), fc.jsonValue()) }),
    ),
    fc.constantFrom('', '\t', ' '),
    fc.integer({ min: 1, max: 7 }),
    fc.integer({ min: 1, max: 40 }),
  )
  .map(([body, indent, blockChars, maxBlocks]) =>
    toCase(
      'messages' in body ? '/v1/chat/completions' : 'prompt' in body ? '/v1/completions' : '/v1/embeddings',
      JSON.stringify({ model: 'é', ...body }, null, indent),
      { blockChars, maxBlocks },
    ),
  );

describe('the definition of the prefix hashes in docs/record.md', () => {
  it('gives what its test vector says', () => {
    const vector = blockOf('text');
    const [promptChars, prefixHashes] = byGateway(VECTOR);
    expect(vector).toContain(`prompt_chars: ${promptChars}\n`);
    expect(vector.match(/[0-9a-f]{16}/g)).toEqual(prefixHashes);
  });

  it('gives in Python what the gateway computes, for requests of every shape', (context) => {
    if (!hasPython) context.skip('python3 is not installed');
    const expected = byPython(CASES);
    for (const [index, each] of CASES.entries()) expect(byGateway(each), each.body).toEqual(expected[index]);
  });

  it('gives in Python what the gateway computes, for 1,000 generated requests', (context) => {
    if (!hasPython) context.skip('python3 is not installed');
    const cases = fc.sample(anyCase, 1000);
    const expected = byPython(cases);
    for (const [index, each] of cases.entries()) expect(byGateway(each), each.body).toEqual(expected[index]);
  });
});
