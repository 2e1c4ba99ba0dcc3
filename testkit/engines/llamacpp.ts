import { DONE } from '../../src/simulate/dialects/dialect.ts';
import { llamacppDialect } from '../../src/simulate/dialects/llamacpp.ts';
import { alignedCapture, alignedWithUsage, type CapturedPair } from './aligned-capture.ts';
import { type EngineCase, readIncludeUsage, type ScriptedEngine, type UsageAsked } from './engine.ts';
import { eventsOf, type Plan, recordOf, TEXT, THINKING, withMembers } from './plans.ts';

const SERVER = 'ggml-org/llama.cpp, tools/server/server-task.cpp';
const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const chat = (plan: Plan, asked: UsageAsked) => eventsOf(llamacppDialect, 'chat', plan, asked);

/** The `timings` on the last chunk of a plan. */
function timingsOf(plan: Plan): object {
  const last = chat(plan, { usage: true, continuous: false }).at(-2) ?? '';
  return JSON.parse(last.slice('data: '.length)).timings;
}

const chatCase = (name: string, plan: Plan, more: Partial<EngineCase> = {}): EngineCase => ({
  name,
  source: SERVER,
  endpoint: CHAT,
  request: {},
  toEvents: (asked) => chat(plan, asked),
  record: { ...recordOf(plan, true), timings: timingsOf(plan) },
  ...more,
});

function capturedCase(
  name: string,
  file: string,
  pair: CapturedPair,
  more: Pick<EngineCase, 'endpoint' | 'record'> & Partial<EngineCase>,
): EngineCase {
  return {
    name,
    source: `captures/llama/${file}-usage.txt, ${file}-nousage.txt`,
    request: {},
    toEvents: ({ usage }) => [usage ? pair.asked : pair.unasked],
    ...more,
  };
}

const chatPair = (file: string) => alignedCapture(`llama/${file}-usage`, `llama/${file}-nousage`);
const completionPair = (file: string, asked = `${file}-usage`) =>
  alignedWithUsage(`llama/${asked}`, `llama/${file}-nousage`);

const PING = ':\n\n';
const BARE_ERROR = llamacppDialect.streamError.replace(/^data: \{"error":(.*)\}\n\n$/, 'error: $1\n\n');
const figures = (prompt_tokens: number, completion_tokens: number, cached_tokens: number) => ({
  prompt_tokens,
  completion_tokens,
  cached_tokens,
});

const capturedCases: readonly EngineCase[] = [
  capturedCase('chat, captured', 'chat-stream', chatPair('chat-stream'), {
    endpoint: CHAT,
    record: { ...figures(28, 12, 27), finish_reasons: ['length'] },
  }),
  capturedCase('chat, n = 2', 'chat-stream-n2', chatPair('chat-stream-n2'), {
    endpoint: CHAT,
    request: { n: 2 },
    record: { ...figures(18, 10, 17), finish_reasons: ['length', 'length'] },
  }),
  capturedCase('chat, tool call', 'chat-tools-stream', chatPair('chat-tools-stream'), {
    endpoint: CHAT,
    record: { ...figures(224, 27, 223), finish_reasons: ['tool_calls'] },
  }),
  capturedCase('chat, engine timings', 'chat-stream-timings', chatPair('chat-stream-timings'), {
    endpoint: CHAT,
    request: { timings_per_token: true },
    record: figures(18, 4, 17),
  }),
  capturedCase('chat, metadata chunks', 'chat-stream-progress', chatPair('chat-stream-progress'), {
    endpoint: CHAT,
    request: { return_progress: true },
    record: figures(18, 3, 17),
  }),
  capturedCase(
    'completions',
    'completions-stream',
    completionPair('completions-stream', 'completions-stream-usage-again'),
    {
      endpoint: COMPLETIONS,
      record: { ...figures(3, 6, 2), finish_reasons: ['length'] },
    },
  ),
  capturedCase('completions, n = 2', 'completions-stream-n2', completionPair('completions-stream-n2'), {
    endpoint: COMPLETIONS,
    request: { n: 2 },
    record: { ...figures(3, 8, 2), finish_reasons: ['length', 'length'] },
  }),
  capturedCase(
    'completions, two prompts',
    'completions-stream-prompts',
    completionPair('completions-stream-prompts'),
    {
      endpoint: COMPLETIONS,
      request: { prompt: ['The sea', 'A tree'] },
      record: { ...figures(5, 8, 3), finish_reasons: ['length', 'length'] },
    },
  ),
];

/** llama.cpp's server, since usage is sent only when asked for (ggml-org/llama.cpp#16052). */
export const llamacpp: ScriptedEngine = {
  name: 'llama.cpp',
  engine: 'llamacpp',
  contentType: 'text/event-stream',
  readAsked: readIncludeUsage,
  cases: [
    ...capturedCases,
    chatCase('chat', TEXT),
    chatCase('chat, reasoning', THINKING),
    chatCase('chat, verbose', TEXT, {
      source: `${SERVER}: to_json_oaicompat_chat_stream; measured with build 11434`,
      request: { verbose: true },
      toEvents: (asked) =>
        chat(TEXT, asked).map((event) =>
          event.includes('"choices":[]') || event === DONE
            ? event
            : withMembers(event, { __verbose: { index: 0, timings: timingsOf(TEXT) } }),
        ),
    }),
    chatCase('chat, pings', TEXT, {
      source: 'ggml-org/llama.cpp#24013',
      toEvents: (asked) => [
        PING,
        PING,
        ...chat(TEXT, asked).flatMap((event, i) => (i < 3 ? [event, PING] : [event])),
      ],
    }),
    chatCase('error in the stream', TEXT, {
      source: 'ggml-org/llama.cpp#16109',
      toEvents: (asked) => [...chat(TEXT, asked).slice(0, 2), llamacppDialect.streamError],
      record: { error_type: 'upstream_error', status: 200 },
    }),
    chatCase('error in the stream, error: line', TEXT, {
      source: 'ggml-org/llama.cpp#16104: before 2025-09',
      toEvents: (asked) => [...chat(TEXT, asked).slice(0, 2), BARE_ERROR],
      record: { error_type: 'upstream_error', status: 200 },
    }),
  ],
};
