import { DONE, event } from '../../src/simulate/dialects/dialect.ts';
import { type EngineCase, readIncludeUsage, type ScriptedEngine, type UsageAsked, when } from './engine.ts';
import {
  type Chunk,
  chunksOf,
  type Plan,
  plainUsage,
  recordOf,
  TEXT,
  THINKING,
  TOOL_CALL,
  textOf,
  withOwnFinish,
} from './plans.ts';

const MIDDLEWARE = 'ollama/ollama, middleware/openai.go and openai/openai.go';
const chat = {
  id: 'chatcmpl-71',
  object: 'chat.completion.chunk',
  created: 1_795_000_000,
  model: 'm',
  system_fingerprint: 'fp_ollama',
};

/** Thoughts are in `reasoning`. */
function toOwnDelta({ reasoning_content: reasoning, ...delta }: Chunk['delta']): object {
  return { ...delta, ...when(reasoning !== undefined, { reasoning }) };
}

function toChat(plan: Plan, { usage }: UsageAsked): string[] {
  const steps = withOwnFinish(chunksOf(plan)).map(({ index, delta, finish }) =>
    event({
      ...chat,
      choices: [
        { index, delta: { role: 'assistant', content: '', ...toOwnDelta(delta) }, finish_reason: finish },
      ],
    }),
  );
  return [...steps, ...(usage ? [event({ ...chat, choices: [], usage: plainUsage(plan) })] : []), DONE];
}

/** Once usage is asked for, every chunk has a usage of zeros (CompleteWriter.writeResponse). */
function toCompletion(plan: Plan, { usage }: UsageAsked): string[] {
  const { model, system_fingerprint } = chat;
  const chunk = (choices: object[], figures: object) =>
    event({
      id: 'cmpl-71',
      object: 'text_completion',
      created: 1_795_000_000,
      choices,
      model,
      system_fingerprint,
      ...when(usage, { usage: figures }),
    });
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const steps = withOwnFinish(chunksOf(plan)).map((step) =>
    chunk([{ text: textOf(step), index: step.index, finish_reason: step.finish }], zeros),
  );
  return [...steps, ...(usage ? [chunk([], plainUsage(plan))] : []), DONE];
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
    chatCase('chat, reasoning', THINKING),
    chatCase('error in the stream', TEXT, {
      source: `${MIDDLEWARE}: an error after 200 is read as an empty answer, and nothing follows it`,
      toEvents: (asked) => [
        ...toChat(TEXT, asked).slice(0, 2),
        event({
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
