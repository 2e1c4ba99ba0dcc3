import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';
import { createPrefixHasher, type PrefixHasher } from '../../../src/proxy/record/prefix-hashes.ts';
import { readRequestFacts } from '../../../src/proxy/request/inspection/request-facts.ts';
import { describeRequestText } from '../../../src/proxy/request/inspection/request-text.ts';

/** Two requests, and how many code points a block has. */
interface Pair {
  /** Its path. */
  readonly endpoint: string;
  readonly bodies: readonly [object, object];
  readonly blockChars: number;
}

const MAX_BLOCKS = 20;
const salt = Buffer.from('salt');

/** The hashed text of a request, in code points: what its hasher is given. */
function hashedTextOf(body: object, path: string): readonly string[] {
  const { mediaMark } = createPrefixHasher({ salt, blockChars: 1, maxBlocks: 1 });
  let text = '';
  const transcriber: PrefixHasher = {
    mediaMark,
    begin: () => ({
      isFull: false,
      add(utf8) {
        text += utf8.toString();
      },
      finish: () => [],
    }),
  };
  describeBody(body, path, transcriber);
  return [...text];
}

function describeBody(body: object, path: string, hasher: PrefixHasher) {
  const bytes = Buffer.from(JSON.stringify(body));
  const endpoint = endpointAt(path);
  return describeRequestText(bytes, readRequestFacts(bytes, endpoint), endpoint, hasher);
}

/** How many leading elements two lists have in common. */
function countCommon(a: readonly string[], b: readonly string[]): number {
  const limit = Math.min(a.length, b.length);
  for (let index = 0; index < limit; index++) if (a[index] !== b[index]) return index;
  return limit;
}

// Few letters, so that texts often begin alike.
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'é', '😀', '\n', '\u001e', '"'), maxLength: 12 }),
  fc.constantFrom('', 'a long beginning that many texts have in common', '\ud83d', '\ufffc4:'),
);
const payload = fc.oneof(
  text,
  fc.constantFrom('data:,A', 'data:,B', 'x'.repeat(9000), `y${'x'.repeat(8999)}`),
);
const part = fc.oneof(
  text,
  text.map((value) => ({ type: 'text', text: value })),
  payload.map((url) => ({ type: 'image_url', image_url: { url } })),
  payload.map((url) => ({ type: 'image_url', image_url: url })),
  payload.map((url) => ({ type: 'video_url', video_url: { url } })),
  payload.map((url) => ({ type: 'audio_url', audio_url: { url } })),
  payload.map((data) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } })),
  payload.map((data) => ({ type: 'file', file: { file_data: data } })),
  fc.constantFrom({ type: 'file', file: { file_id: 'f' } }, { type: 'refusal', refusal: 'no' }, 7, null),
);
const toolCall = fc.record({
  id: fc.constantFrom('c1', 'c2'),
  type: fc.constant('function'),
  function: fc.record({ name: fc.constant('add'), arguments: text }),
});
const message = fc.record(
  {
    role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
    content: fc.oneof(text, fc.array(part, { maxLength: 4 }), fc.constant(null)),
    tool_calls: fc.array(toolCall, { maxLength: 2 }),
  },
  { requiredKeys: ['role', 'content'] },
);

/** Two lists that begin alike, or are the same. */
function twoLists<T>(element: fc.Arbitrary<T>): fc.Arbitrary<readonly [readonly T[], readonly T[]]> {
  const list = fc.array(element, { maxLength: 4 });
  return fc.tuple(list, list, list).map(
    ([common, a, b]) =>
      [
        [...common, ...a],
        [...common, ...b],
      ] as const,
  );
}

const twoTexts = fc.tuple(text, text, text).map(([common, a, b]) => [common + a, common + b] as const);
const twoStrings = fc.oneof(twoTexts, twoLists(text));

const pair: fc.Arbitrary<Pair> = fc
  .record({
    made: fc.oneof(
      twoLists(message).map((two) => ['/v1/chat/completions', 'messages', two] as const),
      twoStrings.map((two) => ['/v1/completions', 'prompt', two] as const),
      twoStrings.map((two) => ['/v1/embeddings', 'input', two] as const),
    ),
    shared: fc.constantFrom({ model: 'm' }, { model: 'n', tools: [{ type: 'function' }] }),
    blockChars: fc.integer({ min: 1, max: 9 }),
  })
  .map(({ made: [endpoint, name, [a, b]], shared, blockChars }) => ({
    endpoint,
    bodies: [
      { ...shared, [name]: a },
      { ...shared, [name]: b },
    ],
    blockChars,
  }));

describe('the common leading hashes of two requests', () => {
  it('are those of the whole blocks that their hashed texts have in common, and no more', () => {
    let sharingCount = 0;
    fc.assert(
      fc.property(pair, ({ endpoint, bodies, blockChars }) => {
        const hasher = createPrefixHasher({ salt, blockChars, maxBlocks: MAX_BLOCKS });
        const [a = [], b = []] = bodies.map(
          (body) => describeBody(body, endpoint, hasher).prefixHashes ?? [],
        );
        const [textA = [], textB = []] = bodies.map((body) => hashedTextOf(body, endpoint));
        const commonBlocks = Math.floor(countCommon(textA, textB) / blockChars);
        expect(countCommon(a, b)).toBe(Math.min(commonBlocks, MAX_BLOCKS));
        // Chained: after the first difference nothing is equal by its place alone.
        for (let i = countCommon(a, b); i < Math.min(a.length, b.length); i++) expect(a[i]).not.toBe(b[i]);
        if (commonBlocks > 0 && commonBlocks < MAX_BLOCKS) sharingCount++;
      }),
      { numRuns: runs(1000) },
    );
    // The generator would be worth nothing if it hardly ever made such pairs.
    expect(sharingCount).toBeGreaterThan(runs(100));
  });

  it.each([
    ['the model', { model: 'other' }],
    ['the tools', { tools: [{ type: 'function', function: { name: 'add' } }] }],
    ['the spelling of the tools', { tools: [{}, {}] }],
  ])('are none where %s differs', (_, change) => {
    const hasher = createPrefixHasher({ salt, blockChars: 4, maxBlocks: MAX_BLOCKS });
    const body = { model: 'm', tools: [{}], messages: [{ role: 'user', content: 'the same text' }] };
    const endpoint = '/v1/chat/completions';
    const [a = [], b = []] = [body, { ...body, ...change }].map(
      (each) => describeBody(each, endpoint, hasher).prefixHashes,
    );
    expect(a.length).toBeGreaterThan(2);
    expect(countCommon(a, b)).toBe(0);
  });
});
