/** A piece of generated output: one chunk of a stream. */
export interface Step {
  /** The choice. */
  readonly index: number;
  readonly delta: Readonly<Record<string, unknown>>;
  /** Set on the last piece of a choice. */
  readonly finish?: string;
}

/** What a model generates, and the figures for it. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** By choice. */
  readonly completionTokens: readonly number[];
}

/** Text in which the words of the protocol are text. */
export const TEXT: Plan = {
  steps: [
    { index: 0, delta: { content: 'The sea' } },
    { index: 0, delta: { content: ' {"usage":null,"choices":[]}\n\ndata: [DONE]' } },
    { index: 0, delta: { content: ' is wide – 海は広い' }, finish: 'stop' },
  ],
  promptTokens: 9,
  cachedTokens: 4,
  completionTokens: [3],
};

/** Two choices whose pieces alternate; the first finishes before the second. */
export const TWO_CHOICES: Plan = {
  steps: [
    { index: 0, delta: { content: 'A' } },
    { index: 1, delta: { content: 'B' } },
    { index: 0, delta: { content: 'a' }, finish: 'stop' },
    { index: 1, delta: { content: 'b' } },
    { index: 1, delta: { content: 'β' }, finish: 'length' },
  ],
  promptTokens: 9,
  cachedTokens: 4,
  completionTokens: [2, 3],
};

/** A call whose arguments hold what must not be taken for protocol, or for a double. */
export const TOOL_CALL: Plan = {
  steps: [
    {
      index: 0,
      delta: {
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
      },
    },
    {
      index: 0,
      delta: { tool_calls: [{ index: 0, function: { arguments: '{"usage":{"prompt_tokens":1},' } }] },
    },
    {
      index: 0,
      delta: { tool_calls: [{ index: 0, function: { arguments: '"id":12345678901234567890}' } }] },
      finish: 'tool_calls',
    },
  ],
  promptTokens: 30,
  cachedTokens: 0,
  completionTokens: [12],
};

/** Thoughts first, in the member that the engine uses for them. */
export function thinking(member: 'reasoning' | 'reasoning_content'): Plan {
  return {
    steps: [
      { index: 0, delta: { [member]: 'Hm' } },
      { index: 0, delta: { [member]: '…' } },
      { index: 0, delta: { content: 'Yes' }, finish: 'stop' },
    ],
    promptTokens: 9,
    cachedTokens: 4,
    completionTokens: [3],
  };
}

/** The steps with the finish reason in a chunk of its own, as most engines send it. */
export function withOwnFinish(steps: readonly Step[]): Step[] {
  return steps.flatMap(({ finish, ...step }) =>
    finish === undefined ? [step] : [step, { index: step.index, delta: {}, finish }],
  );
}

/** The text of a step, for the completions endpoint. */
export function textOf({ delta }: Step): string {
  return typeof delta.content === 'string' ? delta.content : '';
}

/** Completion tokens over all choices. */
export function totalOf({ completionTokens }: Plan): number {
  return completionTokens.reduce((sum, count) => sum + count, 0);
}

/** The record of a plan, cached tokens left out unless the engine tells them. */
export function recordOf(plan: Plan, tellsCached: boolean): Record<string, unknown> {
  const finishes = plan.steps.filter(({ finish }) => finish !== undefined).sort((a, b) => a.index - b.index);
  return {
    prompt_tokens: plan.promptTokens,
    completion_tokens: totalOf(plan),
    cached_tokens: tellsCached ? plan.cachedTokens : undefined,
    finish_reasons: finishes.map(({ finish }) => finish),
  };
}
