import { DONE, event } from '../../src/simulate/dialects/dialect.ts';
import {
  type ClientStreamOptions,
  type EngineCase,
  readLaxly,
  type ScriptedEngine,
  type UsageAsked,
  when,
} from './engine.ts';
import {
  type Chunk,
  chunksOf,
  type Plan,
  recordOf,
  TEXT,
  THINKING,
  TOOL_CALL,
  TWO_CHOICES,
  textOf,
  totalOf,
  withOwnFinish,
} from './plans.ts';

const CHAT = 'sgl-project/sglang, python/sglang/srt/entrypoints/openai/serving_chat.py';
const COMPLETION = 'sgl-project/sglang, python/sglang/srt/entrypoints/openai/serving_completions.py';
const chat = { id: 'a1b2', object: 'chat.completion.chunk', created: 1_795_000_000, model: 'm' };
const completion = { id: 'a1b2', object: 'text_completion', created: 1_795_000_000, model: 'm' };

/** Running figures have a separate switch (utils.py, should_include_usage). */
function readAsked(options: ClientStreamOptions | null | undefined): UsageAsked | null {
  const usage = readLaxly(options?.include_usage);
  return usage === null ? null : { usage, continuous: options?.continuous_usage_stats === true };
}

function running(plan: Plan, continuous: boolean): object {
  const figures = {
    prompt_tokens: plan.promptTokens,
    total_tokens: plan.promptTokens + 1,
    completion_tokens: 1,
  };
  return { usage: continuous ? { ...figures, prompt_tokens_details: null, reasoning_tokens: 0 } : null };
}

/** Without members that are None: `model_dump_json(exclude_none=True)`. */
function usageChunk(head: object, plan: Plan): string {
  return event({
    ...head,
    choices: [],
    usage: {
      prompt_tokens: plan.promptTokens,
      total_tokens: plan.promptTokens + totalOf(plan),
      completion_tokens: totalOf(plan),
      ...when(plan.cachedTokens > 0, { prompt_tokens_details: { cached_tokens: plan.cachedTokens } }),
      reasoning_tokens: 0,
    },
  });
}

const NO_DELTA = { role: null, content: null, reasoning_content: null, tool_calls: null };

/** Every field, set or not: `model_dump_json()`. */
function toChat(plan: Plan, { usage, continuous }: UsageAsked, before: readonly string[] = []): string[] {
  const chunk = ({ index, delta, finish }: Chunk) =>
    event({
      ...chat,
      choices: [
        {
          index,
          delta: { ...NO_DELTA, ...delta },
          logprobs: null,
          finish_reason: finish,
          matched_stop: null,
        },
      ],
      ...running(plan, continuous && finish === null),
    });
  const roles = plan.completionTokens.map((_, index) => ({
    index,
    delta: { role: 'assistant', content: '' },
    finish: null,
  }));
  const steps = [...roles, ...withOwnFinish(chunksOf(plan))].map(chunk);
  return [...steps, ...before, ...(usage ? [usageChunk(chat, plan)] : []), DONE];
}

function toCompletion(plan: Plan, { usage, continuous }: UsageAsked): string[] {
  const steps = chunksOf(plan).map((step) =>
    event({
      ...completion,
      choices: [
        {
          index: step.index,
          text: textOf(step),
          logprobs: null,
          finish_reason: step.finish,
          matched_stop: null,
        },
      ],
      ...running(plan, continuous),
    }),
  );
  return [...steps, ...(usage ? [usageChunk(completion, plan)] : []), DONE];
}

const SGLEXT = event({
  ...chat,
  choices: [],
  usage: null,
  sglext: { cached_tokens_details: { device: 4, host: 0 } },
});
const ERROR = event({
  error: { object: 'error', message: 'abort', type: 'INTERNAL', param: null, code: 500 },
});

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: CHAT,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => toChat(plan, asked),
  record: recordOf(plan, plan.cachedTokens > 0),
  ...more,
});

const completionCase = (name: string, plan: Plan, request: EngineCase['request'] = {}): EngineCase => ({
  ...chatCase(name, plan),
  source: COMPLETION,
  endpoint: '/v1/completions',
  request,
  toEvents: (asked) => toCompletion(plan, asked),
});

/** SGLang with `--enable-cache-report`, which does not distinguish zero from unknown. */
export const sglang: ScriptedEngine = {
  name: 'sglang',
  engine: 'sglang',
  contentType: 'text/event-stream; charset=utf-8',
  readAsked,
  cases: [
    chatCase('chat', TEXT),
    chatCase('chat, n = 2', TWO_CHOICES, { request: { n: 2 } }),
    chatCase('chat, tool call', TOOL_CALL),
    chatCase('chat, reasoning', THINKING),
    chatCase('chat, metadata chunks', TEXT, {
      source: `${CHAT}: a chunk with sglext, without choices and usage`,
      request: { return_cached_tokens_details: true },
      toEvents: (asked) => toChat(TEXT, asked, [SGLEXT]),
    }),
    chatCase('error in the stream', TEXT, {
      toEvents: (asked) => [...toChat(TEXT, asked).slice(0, 2), ERROR, DONE],
      record: { error_type: 'upstream_error', status: 200 },
    }),
    completionCase('completions', TEXT),
    completionCase('completions, n = 2', TWO_CHOICES, { n: 2 }),
  ],
};
