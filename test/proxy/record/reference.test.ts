import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';
import { createPrefixHasher } from '../../../src/proxy/record/prefix-hashes.ts';
import { readRequestFacts } from '../../../src/proxy/request/inspection/request-facts.ts';
import { describeRequestText } from '../../../src/proxy/request/inspection/request-text.ts';
import { anyCase, anyFurtherCase, type Case, toCase } from './reference-cases.ts';

const page = readFileSync(new URL('../../../docs/internals/prefix-hashes.md', import.meta.url), 'utf8');

/** The first code block of this language on the page. */
function blockOf(language: string): string {
  const found = new RegExp(`\`\`\`${language}\n(.*?)\n\`\`\``, 's').exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/internals/prefix-hashes.md has no ${language} block`);
  return found;
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

const chat = [
  { role: 'system', content: 'Be brief, please.' },
  { role: 'user', content: 'Add one and two, please.' },
];
const [system, user] = chat.map(({ content }) => content);

const RESPONSES: readonly Case[] = [
  { instructions: system, input: user },
  {
    instructions: null,
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: user }] }],
  },
  {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: 'data:,x' },
          { type: 'input_file', file_id: 'f' },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'Hm.' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      { type: 'function_call', call_id: 'c', name: 'add', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'c', output: 'three, because one and two are three' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'three' }] },
      { type: 'reasoning', summary: [{ text: 'sums' }] },
      { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRg==' } }, {}] },
      'text',
      null,
      [1, 2],
    ],
  },
  { input: { text: 'x' } },
  { instructions: system },
].map((body) => toCase('/v1/responses', body));

const MESSAGES: readonly Case[] = [
  { system, messages: [{ role: 'user', content: user }] },
  { system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }], messages: [] },
  {
    system: null,
    tools: [{ name: 'add', input_schema: {} }],
    messages: [
      {
        role: 'user',
        content: [{ type: 'image', source: { type: 'base64', data: 'iVBOR/w0' } }, { text: 'What?' }],
      },
      {
        role: 'user',
        content: [{ type: 'document', source: { type: 'url', url: 'https://x/y' } }, { source: 7 }],
      },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'add', input: { b: 2, a: 1.0 } }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 't', content: 'three, as one and two are' }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', content: [{ text: 'x' }, { content: 'y', name: 'z' }] }],
      },
      { role: 'user', content: [{ type: 'redacted_thinking', data: 'abc' }, 'plain', 7] },
      7,
      { content: { text: 'x' } },
    ],
  },
  { system: 7, messages: [{ role: 7, content: null }] },
  { system, messages: 'x' },
].map((body) => toCase('/v1/messages', body));

describe('the hashes of a conversation', () => {
  const call = { type: 'tool_use', id: 't', name: 'add', input: { a: 1 } };
  const responseTurns = [
    { role: 'user', content: user },
    { type: 'function_call', call_id: 'c', name: 'add', arguments: '{"a":1}' },
    { type: 'function_call_output', call_id: 'c', output: 'three' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'Three.', annotations: [] }] },
    { role: 'user', content: 'And one more?' },
  ];
  const messageTurns = [
    { role: 'user', content: user },
    { role: 'assistant', content: [{ type: 'text', text: 'Let me add.' }, call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'three' }] },
    { role: 'assistant', content: 'Three.' },
    { role: 'user', content: 'And one more?' },
  ];

  /** The turns so far, with the mark for the cache on the last block only, as clients move it. */
  const marked = (turns: readonly { role: string; content: unknown }[]) =>
    turns.map(({ role, content }, i) => {
      if (i < turns.length - 1 || !Array.isArray(content)) return { role, content };
      const cache_control = { type: 'ephemeral' };
      return { role, content: content.map((block: object) => ({ ...block, cache_control })) };
    });

  it.each([
    ['/v1/responses', responseTurns, (turns: readonly unknown[]) => ({ instructions: system, input: turns })],
    [
      '/v1/messages',
      messageTurns,
      (turns: readonly unknown[]) => ({ system, messages: marked(turns as typeof messageTurns) }),
    ],
  ] as const)('at %s go on from turn to turn', (path, turns, toBody) => {
    let before: readonly string[] = [];
    for (let count = 1; count <= turns.length; count++) {
      const [, hashes] = byGateway(
        toCase(path, toBody(turns.slice(0, count)), { blockChars: 1, maxBlocks: 4096 }),
      );
      expect(hashes?.slice(0, before.length)).toEqual(before);
      expect(hashes?.length).toBeGreaterThan(before.length);
      before = hashes ?? [];
    }
  });
});

describe('the definition of the prefix hashes in docs/internals/prefix-hashes.md', () => {
  it('gives what its test vector says', () => {
    const vector = blockOf('text');
    const [promptChars, prefixHashes] = byGateway(VECTOR);
    expect(vector).toContain(`prompt_chars: ${promptChars}\n`);
    expect(vector.match(/[0-9a-f]{16}/g)).toEqual(prefixHashes);
  });

  it('gives in Python what the gateway computes, for requests of every shape', (context) => {
    if (!hasPython) context.skip('python3 is not installed');
    const cases = [...CASES, ...RESPONSES, ...MESSAGES];
    const expected = byPython(cases);
    for (const [index, each] of cases.entries()) expect(byGateway(each), each.body).toEqual(expected[index]);
  });

  it('gives a conversation of texts the same hashes, whichever API it is sent to', () => {
    const expected = byGateway(toCase('/v1/chat/completions', { messages: chat }));
    expect(expected[1]).not.toBeNull();
    expect(byGateway(RESPONSES[0] as Case)).toEqual(expected);
    expect(byGateway(MESSAGES[0] as Case)).toEqual(expected);
  });

  it('gives in Python what the gateway computes, for generated requests', (context) => {
    if (!hasPython) context.skip('python3 is not installed');
    const cases = [...fc.sample(anyCase, runs(1000)), ...fc.sample(anyFurtherCase, runs(1000))];
    const expected = byPython(cases);
    for (const [index, each] of cases.entries()) expect(byGateway(each), each.body).toEqual(expected[index]);
  });
});
