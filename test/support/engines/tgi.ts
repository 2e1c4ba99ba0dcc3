import {
  DONE_EVENT,
  type EngineCase,
  readIncludeUsage,
  type ScriptedEngine,
  toEvent,
  type UsageAsked,
} from './engine.ts';
import { type Plan, recordOf, TEXT, textOf, totalOf } from './plans.ts';

const ROUTER = 'huggingface/text-generation-inference, router/src/lib.rs and server.rs';
const chat = {
  object: 'chat.completion.chunk',
  id: '',
  created: 1_795_000_000,
  model: 'm',
  system_fingerprint: '3.3.6-native',
};

/** `usage` has no skip_serializing_if: every chunk carries it, null but on the usage chunk. */
function toChat(plan: Plan, { usage }: UsageAsked): string[] {
  const steps = plan.steps.map(({ index, delta, finish }) =>
    toEvent({
      ...chat,
      choices: [
        { index, delta: { role: 'assistant', ...delta }, logprobs: null, finish_reason: finish ?? null },
      ],
      usage: null,
    }),
  );
  const last = toEvent({
    ...chat,
    choices: [],
    usage: {
      prompt_tokens: plan.promptTokens,
      completion_tokens: totalOf(plan),
      total_tokens: plan.promptTokens + totalOf(plan),
    },
  });
  return [...steps, ...(usage ? [last] : []), DONE_EVENT];
}

/** The chunks of completions have no member for usage: it never comes. */
function toCompletion(plan: Plan): string[] {
  const steps = plan.steps.map((step) =>
    toEvent({
      id: '',
      created: 1_795_000_000,
      choices: [{ index: step.index, text: textOf(step), logprobs: null, finish_reason: step.finish ?? '' }],
      model: 'm',
      system_fingerprint: '3.3.6-native',
    }),
  );
  return [...steps, DONE_EVENT];
}

/** Old releases put one object where the API has a list. */
const TOOL: Plan = {
  steps: [
    {
      index: 0,
      delta: {
        tool_calls: { index: 0, id: '', type: 'function', function: { name: null, arguments: '{"x":1' } },
      },
    },
    {
      index: 0,
      delta: { tool_calls: { index: 0, id: '', type: 'function', function: { name: null, arguments: '}' } } },
      finish: 'eos_token',
    },
  ],
  promptTokens: 30,
  cachedTokens: 0,
  completionTokens: [8],
};

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
    chatCase('chat, tool call', TOOL),
    chatCase('chat, pings', TEXT, {
      source: 'axum sse::KeepAlive::default; its 15 s are unverified',
      toEvents: (asked) => [
        ':\n\n',
        ...toChat(TEXT, asked).flatMap((event, i) => (i < 2 ? [event, ':\n\n'] : [event])),
      ],
    }),
    chatCase('error in the stream', TEXT, {
      toEvents: (asked) => [
        ...toChat(TEXT, asked).slice(0, 1),
        'data:{"error":{"message":"Request failed during generation","http_status_code":422}}\n\n',
        DONE_EVENT,
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
