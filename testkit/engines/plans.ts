import { type Dialect, toDelta } from '../../src/simulate/dialects/dialect.ts';
import type { Answer, Choice, Token } from '../../src/simulate/plan-answer.ts';
import type { UsageAsked } from './engine.ts';

/** One token of a stream. */
export interface Step {
  /** The choice. */
  readonly index: number;
  readonly token: Token;
  /** Set on the last token of a choice. */
  readonly finish?: Choice['finishReason'];
}

/** What a model generates, and the figures for it. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
  /** By choice. */
  readonly completionTokens: readonly number[];
}

const step = (index: number, text: string, finish?: Choice['finishReason']): Step => ({
  index,
  token: { kind: 'content', text },
  ...(finish === undefined ? {} : { finish }),
});

/** Text in which the words of the protocol are text. */
export const TEXT: Plan = {
  steps: [
    step(0, 'The sea'),
    step(0, ' {"usage":null,"choices":[]}\n\ndata: [DONE]'),
    step(0, ' is wide – 海は広い', 'stop'),
  ],
  promptTokens: 9,
  cachedTokens: 4,
  reasoningTokens: 0,
  completionTokens: [3],
};

/** Two choices whose tokens alternate; the first finishes before the second. */
export const TWO_CHOICES: Plan = {
  ...TEXT,
  steps: [step(0, 'A'), step(1, 'B'), step(0, 'a', 'stop'), step(1, 'b'), step(1, 'β', 'length')],
  completionTokens: [2, 3],
};

/** A call whose arguments hold what must not be taken for protocol, or for a double. */
export const TOOL_CALL: Plan = {
  steps: [
    { index: 0, token: { kind: 'call', text: 'f' } },
    { index: 0, token: { kind: 'arguments', text: '{"usage":{"prompt_tokens":1},' } },
    { index: 0, token: { kind: 'arguments', text: '"id":12345678901234567890}' }, finish: 'tool_calls' },
  ],
  promptTokens: 30,
  cachedTokens: 0,
  reasoningTokens: 0,
  completionTokens: [3],
};

/** Thoughts before the text. */
export const THINKING: Plan = {
  ...TEXT,
  steps: [
    { index: 0, token: { kind: 'reasoning', text: 'Hm' } },
    { index: 0, token: { kind: 'reasoning', text: '…' } },
    step(0, 'Yes', 'stop'),
  ],
  reasoningTokens: 2,
};

const TOOL_CALL_ID = 'call_1';

/** What a stopwatch says of every stream here. */
const STOPWATCH = { promptMs: () => 0.657, predictedMs: () => 4.986 };

/** The events that a simulated engine streams for the plan. */
export function eventsOf(
  dialect: Dialect,
  kind: Answer['kind'],
  plan: Plan,
  { usage, continuous }: UsageAsked,
): string[] {
  const streamOptions = { include_usage: usage, continuous_usage_stats: continuous };
  const steps = [...dialect.stream({ ...toAnswer(kind, plan), streamOptions }, STOPWATCH)];
  return steps.flatMap(({ writes }) => writes).flatMap((write) => write.split(/(?<=\n\n)/));
}

function toAnswer(kind: Answer['kind'], plan: Plan): Omit<Answer, 'streamOptions'> {
  const { promptTokens, cachedTokens, reasoningTokens } = plan;
  const usage = { promptTokens, cachedTokens, createdCacheTokens: 0, reasoningTokens };
  const choices = plan.completionTokens.map((completionTokens, index): Choice => {
    const steps = plan.steps.filter((each) => each.index === index);
    return {
      index,
      tokenCount: steps.length,
      finishReason: steps.at(-1)?.finish ?? 'stop',
      toolCallId: TOOL_CALL_ID,
      usage: { ...usage, completionTokens },
      tokenAt: (position) => steps[position]?.token ?? { kind: 'content', text: '' },
    };
  });
  const all = { ...usage, completionTokens: totalOf(plan) };
  return { kind, id: '1', createdSeconds: 1_795_242_525, model: 'm', choices, usage: all };
}

/** An event with further members at the end of its object. */
export function withMembers(event: string, members: object): string {
  return event.replace(/\}\n\n$/, () => `,${JSON.stringify(members).slice(1)}\n\n`);
}

/** One chunk of an engine that is not simulated. */
export interface Chunk {
  readonly index: number;
  readonly delta: Readonly<Record<string, unknown>>;
  readonly finish: string | null;
}

/** The plan as chunks with the delta that the API documents. */
export function chunksOf({ steps }: Plan): Chunk[] {
  return steps.map(({ index, token, finish = null }) => ({
    index,
    delta: toDelta({ toolCallId: TOOL_CALL_ID }, token),
    finish,
  }));
}

/** The chunks with each finish reason in a chunk of its own, as most engines send it. */
export function withOwnFinish(chunks: readonly Chunk[]): Chunk[] {
  return chunks.flatMap((chunk) =>
    chunk.finish === null
      ? [chunk]
      : [
          { ...chunk, finish: null },
          { ...chunk, delta: {} },
        ],
  );
}

/** The text of a chunk, for the completions endpoint. */
export function textOf({ delta }: Chunk): string {
  return typeof delta.content === 'string' ? delta.content : '';
}

/** A `usage` with the three members that every engine has. */
export function plainUsage(plan: Plan): object {
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: totalOf(plan),
    total_tokens: plan.promptTokens + totalOf(plan),
  };
}

/** Completion tokens over all choices. */
export function totalOf({ completionTokens }: Plan): number {
  return completionTokens.reduce((sum, count) => sum + count, 0);
}

/** The record of a plan, cached tokens left out unless the engine reports them. */
export function recordOf(plan: Plan, reportsCached: boolean): Record<string, unknown> {
  const finishes = plan.steps.filter(({ finish }) => finish !== undefined).sort((a, b) => a.index - b.index);
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: totalOf(plan),
    cached_tokens: reportsCached ? plan.cachedTokens : undefined,
    finish_reasons: finishes.map(({ finish }) => finish),
  };
}
