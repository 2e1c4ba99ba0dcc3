import fc from 'fast-check';
import { anyCharacter } from '#testkit/any-character.ts';

/** A request, and the settings of its hashes. */
export interface Case {
  readonly body: string;
  /** Its path. */
  readonly endpoint: string;
  readonly salt: string;
  readonly blockChars: number;
  readonly maxBlocks: number;
}

/** A request of this endpoint for the model `m`, or with this text as its body. */
export function toCase(endpoint: string, body: object | string, settings: Partial<Case> = {}): Case {
  const text = typeof body === 'string' ? body : JSON.stringify({ model: 'm', ...body });
  return { endpoint, body: text, salt: 'sält', blockChars: 8, maxBlocks: 128, ...settings };
}

const anyText = fc.oneof(
  fc.string({ unit: anyCharacter }),
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
const anyResponseItem = fc.oneof(
  fc.record(
    {
      type: fc.oneof(anyText, fc.constant(7)),
      role: fc.oneof(anyText, fc.constant(null)),
      content: fc.oneof(
        anyText,
        fc.array(
          fc.oneof(anyPart, fc.record({ refusal: anyText, file_url: anyText }, { requiredKeys: [] })),
          { maxLength: 3 },
        ),
        fc.jsonValue({ maxDepth: 1 }),
      ),
      output: fc.oneof(anyText, fc.array(anyPart, { maxLength: 3 }), fc.jsonValue({ maxDepth: 1 })),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue({ maxDepth: 1 }),
);
const blockOver = (content: fc.Arbitrary<unknown>) =>
  fc.oneof(
    anyText,
    fc.record(
      {
        text: fc.oneof(anyText, fc.constant(null)),
        source: fc.oneof(
          anyText,
          fc.record({ data: anyText, url: anyText, file_id: anyText }, { requiredKeys: [] }),
        ),
        content,
        name: anyText,
        input: fc.jsonValue({ maxDepth: 1 }),
        thinking: anyText,
        data: anyText,
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue({ maxDepth: 1 }),
  );
const contentOver = (block: fc.Arbitrary<unknown>) =>
  fc.oneof(anyText, fc.array(block, { maxLength: 3 }), fc.jsonValue({ maxDepth: 1 }));
const anyBlock = blockOver(contentOver(blockOver(contentOver(anyText))));
const anyTurn = fc.oneof(
  fc.record(
    { role: fc.oneof(anyText, fc.constant(null)), content: contentOver(anyBlock) },
    { requiredKeys: [] },
  ),
  fc.jsonValue({ maxDepth: 1 }),
);
const anyBody = fc.oneof(
  fc.tuple(
    fc.constant('/v1/responses'),
    fc.record(
      {
        instructions: fc.oneof(anyText, fc.jsonValue({ maxDepth: 1 })),
        input: fc.oneof(anyText, fc.array(anyResponseItem, { maxLength: 4 }), fc.jsonValue()),
      },
      { requiredKeys: [] },
    ),
  ),
  fc.tuple(
    fc.constant('/v1/messages'),
    fc.record(
      {
        system: contentOver(anyBlock),
        messages: fc.oneof(fc.array(anyTurn, { maxLength: 4 }), fc.jsonValue()),
      },
      { requiredKeys: [] },
    ),
  ),
);
/** Responses and messages of every shape. */
export const anyFurtherCase: fc.Arbitrary<Case> = fc
  .tuple(anyBody, fc.constantFrom('', ' '), fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 40 }))
  .map(([[path, body], indent, blockChars, maxBlocks]) =>
    toCase(path, JSON.stringify({ model: 'é', ...body }, null, indent), { blockChars, maxBlocks }),
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
/** Requests of the contract's endpoints, of every shape. */
export const anyCase: fc.Arbitrary<Case> = fc
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
