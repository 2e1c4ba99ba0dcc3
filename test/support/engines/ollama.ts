import {
  DONE_EVENT,
  type EngineCase,
  readIncludeUsage,
  type ScriptedEngine,
  toEvent,
  type UsageAsked,
  when,
} from './engine.ts';
import { type Plan, recordOf, TEXT, TOOL_CALL, textOf, thinking, totalOf, withOwnFinish } from './plans.ts';

const MIDDLEWARE = 'ollama/ollama, middleware/openai.go and openai/openai.go';
const chat = {
  id: 'chatcmpl-71',
  object: 'chat.completion.chunk',
  created: 1_795_000_000,
  model: 'm',
  system_fingerprint: 'fp_ollama',
};

function usageOf(plan: Plan): object {
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: totalOf(plan),
    total_tokens: plan.promptTokens + totalOf(plan),
  };
}

function toChat(plan: Plan, { usage }: UsageAsked): string[] {
  const steps = withOwnFinish(plan.steps).map(({ index, delta, finish }) =>
    toEvent({
      ...chat,
      choices: [
        { index, delta: { role: 'assistant', content: '', ...delta }, finish_reason: finish ?? null },
      ],
    }),
  );
  return [...steps, ...(usage ? [toEvent({ ...chat, choices: [], usage: usageOf(plan) })] : []), DONE_EVENT];
}

/** Once usage is asked for, every chunk has a usage of zeros (CompleteWriter.writeResponse). */
function toCompletion(plan: Plan, { usage }: UsageAsked): string[] {
  const { model, system_fingerprint } = chat;
  const chunk = (choices: object[], figures: object) =>
    toEvent({
      id: 'cmpl-71',
      object: 'text_completion',
      created: 1_795_000_000,
      choices,
      model,
      system_fingerprint,
      ...when(usage, { usage: figures }),
    });
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const steps = withOwnFinish(plan.steps).map((step) =>
    chunk([{ text: textOf(step), index: step.index, finish_reason: step.finish ?? null }], zeros),
  );
  return [...steps, ...(usage ? [chunk([], usageOf(plan))] : []), DONE_EVENT];
}

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: MIDDLEWARE,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => toChat(plan, asked),
  record: recordOf(plan, false),
  ...more,
});

/** Ollama's /v1. */
export const ollama: ScriptedEngine = {
  name: 'ollama',
  engine: 'ollama',
  contentType: 'text/event-stream',
  readAsked: readIncludeUsage,
  cases: [
    chatCase('chat', TEXT),
    chatCase('chat, tool call', TOOL_CALL),
    chatCase('chat, reasoning', thinking('reasoning')),
    chatCase('error in the stream', TEXT, {
      source: `${MIDDLEWARE}: an error after 200 is read as an empty answer, and nothing follows it`,
      toEvents: (asked) => [
        ...toChat(TEXT, asked).slice(0, 2),
        toEvent({
          ...chat,
          choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
        }),
      ],
      record: { error_type: undefined, truncated: true, status: 200 },
    }),
    {
      ...chatCase('completions', TEXT),
      endpoint: '/v1/completions',
      toEvents: (asked) => toCompletion(TEXT, asked),
    },
  ],
};
