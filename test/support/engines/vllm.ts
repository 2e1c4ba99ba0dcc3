import { alignedCapture } from './aligned-capture.ts';
import {
  type ClientStreamOptions,
  DONE_EVENT,
  type EngineCase,
  readLaxly,
  type ScriptedEngine,
  toEvent,
  type UsageAsked,
  when,
} from './engine.ts';
import { type Plan, recordOf, TEXT, TOOL_CALL, TWO_CHOICES, textOf, thinking, totalOf } from './plans.ts';

const CHAT = 'vllm-project/vllm, vllm/entrypoints/openai/chat_completion/serving.py';
const COMPLETION = 'vllm-project/vllm, vllm/entrypoints/openai/completion/serving.py';
const FINGERPRINT = { system_fingerprint: 'vllm-0.32.0-ca8f72e5' };
const chat = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_795_242_525, model: 'm' };
const completion = { id: 'cmpl-1', object: 'text_completion', created: 1_795_242_542, model: 'm' };

/** Running figures need `include_usage`, which defaults to false (vllm-project/vllm#36379). */
function readAsked(options: ClientStreamOptions | null | undefined): UsageAsked | null {
  const usage = readLaxly(options?.include_usage);
  return usage === null ? null : { usage, continuous: usage && options?.continuous_usage_stats === true };
}

/** `include_usage` defaulted to true in an object. */
function readAskedBefore0180(options: ClientStreamOptions | null | undefined): UsageAsked | null {
  const isUnset = options !== null && options !== undefined && options.include_usage === undefined;
  return readAsked(isUnset ? { ...options, include_usage: true } : options);
}

/** The figures of one choice so far. */
function running(promptTokens: number, completionTokens: number): object {
  return {
    usage: {
      prompt_tokens: promptTokens,
      total_tokens: promptTokens + completionTokens,
      completion_tokens: completionTokens,
      completion_tokens_details: null,
    },
  };
}

function finalUsage(plan: Plan): object {
  return {
    usage: {
      prompt_tokens: plan.promptTokens,
      total_tokens: plan.promptTokens + totalOf(plan),
      completion_tokens: totalOf(plan),
      prompt_tokens_details: { cached_tokens: plan.cachedTokens, created_cache_tokens: 0 },
    },
  };
}

/** Each step with the completion tokens of its choice so far: the last has them all. */
function counted({ steps, completionTokens }: Plan) {
  const done = completionTokens.map(() => 0);
  return steps.map((step) => {
    const { index, finish } = step;
    done[index] = finish === undefined ? (done[index] ?? 0) + 1 : (completionTokens[index] ?? 0);
    return { ...step, done: done[index] };
  });
}

/** Only fields that were set, as `model_dump_json(exclude_unset=True)` writes them. */
function toChat(plan: Plan, { usage, continuous }: UsageAsked, metrics?: object): string[] {
  const roles = plan.completionTokens.map((_, index) =>
    toEvent({
      ...chat,
      choices: [{ index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
      ...when(continuous, running(plan.promptTokens, 0)),
      prompt_token_ids: null,
      prompt_text: null,
    }),
  );
  const steps = counted(plan).map(({ index, delta, finish, done }) =>
    toEvent({
      ...chat,
      choices: [
        {
          index,
          delta,
          logprobs: null,
          finish_reason: finish ?? null,
          ...when(finish !== undefined, { stop_reason: null }),
          token_ids: null,
        },
      ],
      ...when(continuous, running(plan.promptTokens, done)),
      ...when(finish !== undefined && !usage, FINGERPRINT),
    }),
  );
  const timed = metrics === undefined ? {} : { metrics };
  const last = toEvent({ ...chat, choices: [], ...finalUsage(plan), ...FINGERPRINT, ...timed });
  return [...roles, ...steps, ...(usage ? [last] : []), DONE_EVENT];
}

function toCompletion(plan: Plan, { usage, continuous }: UsageAsked): string[] {
  const steps = counted(plan).map((step) =>
    toEvent({
      ...completion,
      choices: [
        {
          index: step.index,
          text: textOf(step),
          logprobs: null,
          finish_reason: step.finish ?? null,
          stop_reason: null,
          prompt_token_ids: null,
          token_ids: null,
        },
      ],
      ...when(continuous, running(plan.promptTokens, step.done)),
      ...when(step.finish !== undefined && !usage, FINGERPRINT),
    }),
  );
  const last = toEvent({ ...completion, choices: [], ...finalUsage(plan), ...FINGERPRINT });
  return [...steps, ...(usage ? [last] : []), DONE_EVENT];
}

/** The whole response as one event, with its usage, asked or not. */
function toBeam(plan: Plan): string[] {
  const choices = plan.completionTokens.map((_, index) => ({
    index,
    text: `beam ${index}`,
    logprobs: null,
    finish_reason: 'length',
    stop_reason: null,
  }));
  return [toEvent({ ...completion, choices, ...finalUsage(plan), ...FINGERPRINT }), DONE_EVENT];
}

const captured = alignedCapture('vllm/chat-stream-usage', 'vllm/chat-stream-nousage');
const METRICS = { time_to_first_token: 0.0125, queue_time: 0.5 };
const ERROR = toEvent({
  error: { message: 'engine died', type: 'InternalServerError', param: null, code: 500 },
});
const metadata = toEvent({
  ...chat,
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, token_ids: [17] }],
});

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: CHAT,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => toChat(plan, asked),
  record: recordOf(plan, true),
  ...more,
});

const completionCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  ...chatCase(name, plan),
  source: COMPLETION,
  endpoint: '/v1/completions',
  toEvents: (asked) => toCompletion(plan, asked),
  ...more,
});

/** vLLM 0.32. */
export const vllm: ScriptedEngine = {
  name: 'vllm',
  engine: 'vllm',
  version: '0.32.0',
  contentType: 'text/event-stream; charset=utf-8',
  readAsked,
  cases: [
    chatCase('chat', TEXT),
    chatCase('chat, captured', TEXT, {
      source: 'captures/vllm/chat-stream-usage.txt, chat-stream-nousage.txt',
      toEvents: ({ usage }) => [usage ? captured.asked : captured.unasked],
      record: { prompt_tokens: 28, completion_tokens: 12, cached_tokens: 0, finish_reasons: ['length'] },
    }),
    chatCase('chat, n = 2', TWO_CHOICES, { request: { n: 2 } }),
    chatCase('chat, tool call', TOOL_CALL),
    chatCase('chat, reasoning', thinking('reasoning')),
    chatCase('chat, metadata chunks', TEXT, {
      request: { return_token_ids: true },
      toEvents: (asked) => [metadata, ...toChat(TEXT, asked)],
    }),
    chatCase('chat, engine timings', TEXT, {
      toEvents: (asked) => toChat(TEXT, asked, METRICS),
      record: { ...recordOf(TEXT, true), timings: METRICS },
    }),
    chatCase('chat, usage:null beside usage', TEXT, {
      source: 'vllm-project/vllm before 2025, serving_chat.py: chunk.usage = None (vllm-project/vllm#6540)',
      toEvents: (asked) =>
        toChat(TEXT, { ...asked, continuous: false }).map((event) =>
          asked.usage && event.includes('"index"') ? event.replace(/\}\n\n$/, ',"usage":null}\n\n') : event,
        ),
    }),
    chatCase('chat, usage for everybody', TWO_CHOICES, {
      source:
        'vllm-project/vllm, --enable-force-include-usage: entrypoints/openai/utils.py, should_include_usage',
      request: { n: 2 },
      toEvents: () => toChat(TWO_CHOICES, { usage: true, continuous: true }),
      // Asked for running figures that they do not want summed up, such a server looks like any other.
      isComparable: (options) =>
        !options?.continuous_usage_stats || readLaxly(options.include_usage) !== false,
    }),
    chatCase('error in the stream', TEXT, {
      toEvents: (asked) => [...toChat(TEXT, asked).slice(0, 2), ERROR, DONE_EVENT],
      record: { error_type: 'upstream_error', status: 200 },
    }),
    completionCase('completions', TEXT),
    completionCase('completions, n = 2', TWO_CHOICES, { request: { n: 2 } }),
    completionCase('completions, beam search', TWO_CHOICES, {
      source: `${COMPLETION}: fake_stream_generator`,
      request: { use_beam_search: true, n: 2 },
      toEvents: () => toBeam(TWO_CHOICES),
      record: { prompt_tokens: 9, completion_tokens: 5, finish_reasons: ['length', 'length'] },
    }),
  ],
};

/** Its habits before 0.18. */
export const vllmBefore0180: ScriptedEngine = {
  ...vllm,
  name: 'vllm 0.17',
  version: '0.17.1',
  readAsked: readAskedBefore0180,
  cases: [
    chatCase('chat', TEXT, { source: 'vllm-project/vllm#36379' }),
    chatCase('chat, n = 2', TWO_CHOICES, { request: { n: 2 }, source: 'vllm-project/vllm#36379' }),
    completionCase('completions', TEXT, { source: 'vllm-project/vllm#36379' }),
  ],
};
