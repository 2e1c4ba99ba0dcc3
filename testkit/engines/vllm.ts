import { event } from '../../src/simulate/dialects/dialect.ts';
import { vllmDialect } from '../../src/simulate/dialects/vllm.ts';
import { alignedCapture } from './aligned-capture.ts';
import {
  type ClientStreamOptions,
  type EngineCase,
  readLaxly,
  type ScriptedEngine,
  type UsageAsked,
} from './engine.ts';
import {
  eventsOf,
  type Plan,
  recordOf,
  TEXT,
  THINKING,
  TOOL_CALL,
  TWO_CHOICES,
  withMembers,
} from './plans.ts';

const CHAT = 'vllm-project/vllm, vllm/entrypoints/openai/chat_completion/serving.py';
const COMPLETION = 'vllm-project/vllm, vllm/entrypoints/openai/completion/serving.py';

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

const chat = (plan: Plan, asked: UsageAsked) => eventsOf(vllmDialect, 'chat', plan, asked);
const completion = (plan: Plan, asked: UsageAsked) => eventsOf(vllmDialect, 'completion', plan, asked);

/** The whole response as one event, with its usage, asked or not. */
function toBeam(plan: Plan): string[] {
  const choices = plan.completionTokens.map((_, index) => ({
    index,
    text: `beam ${index}`,
    logprobs: null,
    finish_reason: 'length',
    stop_reason: null,
  }));
  return completion(plan, { usage: true, continuous: false })
    .slice(-2)
    .map((event) => event.replace('"choices":[]', () => `"choices":${JSON.stringify(choices)}`));
}

const captured = alignedCapture('vllm/chat-stream-usage', 'vllm/chat-stream-nousage');
const METRICS = { time_to_first_token: 0.0125, queue_time: 0.5 };
const metadata = event({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_795_242_525,
  model: 'm',
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, token_ids: [17] }],
});

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: CHAT,
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: (asked) => chat(plan, asked),
  record: recordOf(plan, true),
  ...more,
});

const completionCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  ...chatCase(name, plan),
  source: COMPLETION,
  endpoint: '/v1/completions',
  toEvents: (asked) => completion(plan, asked),
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
    chatCase('chat, reasoning', THINKING),
    chatCase('chat, metadata chunks', TEXT, {
      request: { return_token_ids: true },
      toEvents: (asked) => [metadata, ...chat(TEXT, asked)],
    }),
    chatCase('chat, engine timings', TEXT, {
      toEvents: (asked) =>
        chat(TEXT, asked).map((each) =>
          each.includes('"choices":[]') ? withMembers(each, { metrics: METRICS }) : each,
        ),
      record: { ...recordOf(TEXT, true), timings: METRICS },
    }),
    chatCase('chat, usage:null beside usage', TEXT, {
      source: 'vllm-project/vllm before 2025, serving_chat.py: chunk.usage = None (vllm-project/vllm#6540)',
      toEvents: (asked) =>
        chat(TEXT, { ...asked, continuous: false }).map((each) =>
          asked.usage && each.includes('"index"') ? withMembers(each, { usage: null }) : each,
        ),
    }),
    chatCase('chat, usage for everybody', TWO_CHOICES, {
      source:
        'vllm-project/vllm, --enable-force-include-usage: entrypoints/openai/utils.py, should_include_usage',
      request: { n: 2 },
      toEvents: () => chat(TWO_CHOICES, { usage: true, continuous: true }),
      // Asked for running figures that they do not want summed up, such a server looks like any other.
      isComparable: (options) =>
        !options?.continuous_usage_stats || readLaxly(options.include_usage) !== false,
    }),
    chatCase('error in the stream', TEXT, {
      toEvents: (asked) => [...chat(TEXT, asked).slice(0, 2), vllmDialect.streamError],
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
