import {
  DONE_EVENT,
  type EngineCase,
  readIncludeUsage,
  type ScriptedEngine,
  toEvent,
  type UsageAsked,
  when,
} from './engine.ts';
import {
  type Plan,
  recordOf,
  type Step,
  TEXT,
  TOOL_CALL,
  TWO_CHOICES,
  textOf,
  totalOf,
  withOwnFinish,
} from './plans.ts';

const REFERENCE =
  'OpenAI API reference, stream_options: all other chunks will also include a usage field, but with a null value';
const chat = {
  id: 'chatcmpl-B9',
  object: 'chat.completion.chunk',
  created: 1_795_000_000,
  model: 'm',
  service_tier: 'default',
  system_fingerprint: 'fp_44709d6fcb',
};

function usageOf(plan: Plan): object {
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: totalOf(plan),
    total_tokens: plan.promptTokens + totalOf(plan),
    prompt_tokens_details: { cached_tokens: plan.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 0 },
  };
}

function toChat(plan: Plan, { usage }: UsageAsked): string[] {
  const roles: Step[] = plan.completionTokens.map((_, index) => ({
    index,
    delta: { role: 'assistant', content: '', refusal: null },
  }));
  const steps = [...roles, ...withOwnFinish(plan.steps)].map(({ index, delta, finish }) =>
    toEvent({
      ...chat,
      choices: [{ index, delta, logprobs: null, finish_reason: finish ?? null }],
      ...when(usage, { usage: null }),
      obfuscation: 'xY3',
    }),
  );
  const last = toEvent({ ...chat, choices: [], usage: usageOf(plan), obfuscation: '' });
  return [...steps, ...(usage ? [last] : []), DONE_EVENT];
}

function toCompletion(plan: Plan, { usage }: UsageAsked): string[] {
  const head = { id: 'cmpl-B9', object: 'text_completion', created: 1_795_000_000 };
  const steps = plan.steps.map((step) =>
    toEvent({
      ...head,
      choices: [
        { text: textOf(step), index: step.index, logprobs: null, finish_reason: step.finish ?? null },
      ],
      model: 'm',
      ...when(usage, { usage: null }),
    }),
  );
  const last = toEvent({ ...head, choices: [], model: 'm', usage: usageOf(plan) });
  return [...steps, ...(usage ? [last] : []), DONE_EVENT];
}

const REFUSAL: Plan = {
  ...TEXT,
  steps: [
    { index: 0, delta: { refusal: "I'm" } },
    { index: 0, delta: { refusal: ' sorry' }, finish: 'stop' },
  ],
};

const FUNCTION_CALL: Plan = {
  ...TEXT,
  steps: [
    { index: 0, delta: { function_call: { name: 'f', arguments: '' } } },
    { index: 0, delta: { function_call: { arguments: '{}' } }, finish: 'function_call' },
  ],
};

const openaiCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: REFERENCE,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => toChat(plan, asked),
  record: { ...recordOf(plan, true), reasoning_tokens: 1 },
  ...more,
});

const completionCase = (name: string, plan: Plan, request: EngineCase['request'] = {}): EngineCase => ({
  ...openaiCase(name, plan),
  endpoint: '/v1/completions',
  request,
  toEvents: (asked) => toCompletion(plan, asked),
});

/** OpenAI itself, and what follows its reference. The order of members is unverified. */
export const openai: ScriptedEngine = {
  name: 'openai',
  engine: 'openai',
  contentType: 'text/event-stream; charset=utf-8',
  readAsked: readIncludeUsage,
  cases: [
    openaiCase('chat', TEXT),
    openaiCase('chat, n = 2', TWO_CHOICES, { request: { n: 2 } }),
    openaiCase('chat, tool call', TOOL_CALL),
    openaiCase('chat, refusal', REFUSAL),
    openaiCase('chat, function_call', FUNCTION_CALL),
    completionCase('completions', TEXT),
    completionCase('completions, n = 2', TWO_CHOICES, { n: 2 }),
  ],
};
