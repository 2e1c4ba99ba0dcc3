import { DONE, event } from '../../src/simulate/dialects/dialect.ts';
import { type EngineCase, readIncludeUsage, type ScriptedEngine, type UsageAsked } from './engine.ts';
import { type Chunk, chunksOf, type Plan, plainUsage, recordOf, TEXT, TOOL_CALL, textOf } from './plans.ts';

const ROUTER = 'huggingface/text-generation-inference, router/src/lib.rs and server.rs';
const chat = {
  object: 'chat.completion.chunk',
  id: '',
  created: 1_795_000_000,
  model: 'm',
  system_fingerprint: '3.3.6-native',
};

/** `usage` has no skip_serializing_if: every chunk carries it, null but on the usage chunk. */
function toChat(plan: Plan, { usage }: UsageAsked, chunks: readonly Chunk[] = chunksOf(plan)): string[] {
  const steps = chunks.map(({ index, delta, finish }) =>
    event({
      ...chat,
      choices: [{ index, delta: { role: 'assistant', ...delta }, logprobs: null, finish_reason: finish }],
      usage: null,
    }),
  );
  const last = event({
    ...chat,
    choices: [],
    usage: plainUsage(plan),
  });
  return [...steps, ...(usage ? [last] : []), DONE];
}

/** The chunks of completions have no member for usage: it never comes. */
function toCompletion(plan: Plan): string[] {
  const steps = chunksOf(plan).map((step) =>
    event({
      id: '',
      created: 1_795_000_000,
      choices: [{ index: step.index, text: textOf(step), logprobs: null, finish_reason: step.finish ?? '' }],
      model: 'm',
      system_fingerprint: '3.3.6-native',
    }),
  );
  return [...steps, DONE];
}

const toolChunk = (name: string | null, text: string, finish: string | null): Chunk => ({
  index: 0,
  delta: { tool_calls: { index: 0, id: '', type: 'function', function: { name, arguments: text } } },
  finish,
});

/** Old releases have one object where the API has a list. */
const TOOL_CHUNKS = [toolChunk(null, '{"x":1', null), toolChunk(null, '}', 'eos_token')];

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: ROUTER,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => toChat(plan, asked),
  record: recordOf(plan, false),
  ...more,
});

/** Hugging Face's text-generation-inference 3. */
export const tgi: ScriptedEngine = {
  name: 'tgi',
  engine: 'tgi',
  contentType: 'text/event-stream',
  // The member is required where there are options (huggingface/text-generation-inference, docs/openapi.json).
  readAsked: (options) =>
    options && typeof options.include_usage !== 'boolean' ? null : readIncludeUsage(options),
  cases: [
    chatCase('chat', TEXT),
    chatCase('chat, tool call', TOOL_CALL, {
      toEvents: (asked) => toChat(TOOL_CALL, asked, TOOL_CHUNKS),
      record: { ...recordOf(TOOL_CALL, false), finish_reasons: ['eos_token'] },
    }),
    chatCase('chat, pings', TEXT, {
      source: 'axum sse::KeepAlive::default; its 15 s are unverified',
      toEvents: (asked) => [
        ':\n\n',
        ...toChat(TEXT, asked).flatMap((each, i) => (i < 2 ? [each, ':\n\n'] : [each])),
      ],
    }),
    chatCase('error in the stream', TEXT, {
      toEvents: (asked) => [
        ...toChat(TEXT, asked).slice(0, 1),
        'data:{"error":{"message":"Request failed during generation","http_status_code":422}}\n\n',
        DONE,
      ],
      record: { error_type: 'upstream_error', status: 200 },
    }),
    {
      ...chatCase('completions', TEXT),
      endpoint: '/v1/completions',
      toEvents: () => toCompletion(TEXT),
      record: { prompt_tokens: undefined, completion_tokens: undefined, finish_reasons: ['stop'] },
    },
  ],
};
