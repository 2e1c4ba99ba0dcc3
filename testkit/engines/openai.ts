import { openaiDialect } from '../../src/simulate/dialects/openai.ts';
import { type EngineCase, readIncludeUsage, type ScriptedEngine, type UsageAsked } from './engine.ts';
import { eventsOf, type Plan, recordOf, TEXT, TOOL_CALL, TWO_CHOICES, withMembers } from './plans.ts';

const REFERENCE =
  'OpenAI API reference, stream_options: all other chunks will also include a usage field, but with a null value';

/** The chat stream of the reference, with what api.openai.com adds to each chunk. */
function chat(plan: Plan, asked: UsageAsked): string[] {
  return eventsOf(openaiDialect, 'chat', plan, asked).map((event) =>
    withMembers(event.replace('"system_fingerprint"', '"service_tier":"default","system_fingerprint"'), {
      obfuscation: event.includes('"choices":[]') ? '' : 'xY3',
    }),
  );
}

/** The text of the plan as a refusal. */
const toRefusal = (events: readonly string[]) =>
  events.map((event) => event.replace('"delta":{"content":', '"delta":{"refusal":'));

/** The tool call of the plan in the members that tool calls replaced. */
const toFunctionCall = (events: readonly string[]) =>
  events.map((event) =>
    event
      .replace(/"tool_calls":\[\{.*?"function":(\{.*?\})\}\]/, '"function_call":$1')
      .replace('"finish_reason":"tool_calls"', '"finish_reason":"function_call"'),
  );

const FUNCTION_CALL: Plan = {
  ...TOOL_CALL,
  steps: [
    { index: 0, token: { kind: 'call', text: 'f' } },
    { index: 0, token: { kind: 'arguments', text: '{}' }, finish: 'tool_calls' },
  ],
};

const openaiCase = (name: string, text: Plan, more: Partial<EngineCase> = {}): EngineCase => {
  const plan = { ...text, reasoningTokens: 1 };
  return {
    name,
    source: REFERENCE,
    endpoint: '/v1/chat/completions',
    request: {},
    toEvents: (asked) => chat(plan, asked),
    record: { ...recordOf(plan, true), reasoning_tokens: 1 },
    ...more,
  };
};

const completionCase = (name: string, plan: Plan, request: EngineCase['request'] = {}): EngineCase => ({
  ...openaiCase(name, plan),
  endpoint: '/v1/completions',
  request,
  toEvents: (asked) => eventsOf(openaiDialect, 'completion', { ...plan, reasoningTokens: 1 }, asked),
});

/** OpenAI itself, and servers that follow its reference. The order of members is unverified. */
export const openai: ScriptedEngine = {
  name: 'openai',
  engine: 'openai',
  contentType: 'text/event-stream; charset=utf-8',
  readAsked: readIncludeUsage,
  cases: [
    openaiCase('chat', TEXT),
    openaiCase('chat, n = 2', TWO_CHOICES, { request: { n: 2 } }),
    openaiCase('chat, tool call', TOOL_CALL),
    openaiCase('chat, refusal', TEXT, {
      toEvents: (asked) => toRefusal(chat({ ...TEXT, reasoningTokens: 1 }, asked)),
    }),
    openaiCase('chat, function_call', FUNCTION_CALL, {
      toEvents: (asked) => toFunctionCall(chat({ ...FUNCTION_CALL, reasoningTokens: 1 }, asked)),
      record: { ...recordOf(FUNCTION_CALL, true), reasoning_tokens: 1, finish_reasons: ['function_call'] },
    }),
    completionCase('completions', TEXT),
    completionCase('completions, n = 2', TWO_CHOICES, { n: 2 }),
  ],
};
