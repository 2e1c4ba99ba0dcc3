import { DONE, event } from '../../src/simulate/dialects/dialect.ts';
import { type EngineCase, readIncludeUsage, type ScriptedEngine } from './engine.ts';
import { chunksOf, type Plan, plainUsage, recordOf, TEXT, withOwnFinish } from './plans.ts';

const head = {
  id: 'chatcmpl-q1',
  object: 'chat.completion.chunk',
  created: 1_795_000_000,
  model: 'm',
  system_fingerprint: 'm',
};

function toChat(plan: Plan, usage: boolean): string[] {
  const steps = withOwnFinish(chunksOf(plan)).map(({ index, delta, finish }) =>
    event({
      ...head,
      choices: [
        {
          index,
          delta: finish === null ? { role: 'assistant', ...delta } : {},
          logprobs: null,
          finish_reason: finish,
        },
      ],
    }),
  );
  return [...steps, ...(usage ? [event({ ...head, choices: [], usage: plainUsage(plan) })] : []), DONE];
}

const chatCase = (name: string, more: Partial<EngineCase>): EngineCase => ({
  name,
  source: 'unverified',
  endpoint: '/v1/chat/completions',
  request: {},
  toEvents: ({ usage }) => toChat(TEXT, usage),
  record: recordOf(TEXT, false),
  ...more,
});

/** LM Studio, of which no stream has been captured: role and content together, with or without usage. */
export const lmstudio: ScriptedEngine = {
  name: 'lmstudio (unverified)',
  engine: 'openai',
  contentType: 'text/event-stream',
  readAsked: readIncludeUsage,
  cases: [
    chatCase('chat', {}),
    chatCase('chat, usage never comes', {
      source: 'lmstudio-ai/lmstudio-bug-tracker#713, lmstudio-ai/lmstudio-js#320',
      toEvents: () => toChat(TEXT, false),
      record: { prompt_tokens: undefined, completion_tokens: undefined, finish_reasons: ['stop'] },
    }),
  ],
};
