import type { Chance } from '../engine/chance.ts';

/** How a replica answers a request. */
export interface AnswerPlan {
  readonly status: number;
  readonly kind: 'json' | 'stream';
  /** The number of events with text, or 1. */
  readonly events: number;
  readonly framing: 'length' | 'chunked' | 'close';
  /** Milliseconds before the head, and between two events. */
  readonly firstMs: number;
  readonly gapMs: number;
  /** Further characters in each event, so that a slow client holds the replica back. */
  readonly padChars: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** After so many bytes of the response the replica breaks off; null: it does not. */
  readonly breakAt: { readonly bytes: number; readonly how: 'reset' | 'end' } | null;
  /** It reads the request and says nothing. */
  readonly isSilent: boolean;
  readonly keepsAlive: boolean;
}

/** The usual answers of an engine, and what goes wrong with them. */
export function planAnswer(chance: Chance, isStream: boolean): AnswerPlan {
  const isFault = chance.chance(12);
  const status = isStream || !chance.chance(15) ? 200 : chance.pick([400, 429, 500, 503]);
  const kind = isStream && status === 200 ? 'stream' : 'json';
  return {
    status,
    kind,
    events: kind === 'stream' ? 1 + chance.below(12) : 1,
    framing:
      kind === 'stream'
        ? chance.pick(['chunked', 'chunked', 'close'])
        : chance.pick(['length', 'length', 'chunked', 'close']),
    firstMs: chance.between(0, chance.chance(20) ? 800 : 30),
    gapMs: chance.between(0, chance.chance(10) ? 200 : 10),
    padChars: chance.chance(6) ? chance.below(40_000) : 0,
    promptTokens: 1 + chance.below(2000),
    completionTokens: 1 + chance.below(500),
    breakAt:
      isFault && chance.chance(70)
        ? { bytes: chance.below(chance.chance(50) ? 40 : 600), how: chance.pick(['reset', 'end']) }
        : null,
    isSilent: isFault && chance.chance(15),
    keepsAlive: !chance.chance(15),
  };
}

/** What a replica sends: pieces of the body, and whether the gateway withholds them from a client that did not ask. */
export interface AnswerPiece {
  readonly bytes: Buffer;
  readonly isUsage: boolean;
}

/** The body of an answer in the pieces in which the replica makes it. `withUsage`: the request asked for usage. */
export function toPieces(id: string, plan: AnswerPlan, withUsage: boolean): readonly AnswerPiece[] {
  const { kind, status, events, promptTokens, completionTokens } = plan;
  const padding = '.'.repeat(plan.padChars);
  const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
  if (status !== 200)
    return [toPiece(JSON.stringify({ error: { message: `no ${id}`, type: 'x', code: null } }))];
  if (kind === 'json') {
    const choices = [
      { index: 0, message: { role: 'assistant', content: `answer ${id}${padding}` }, finish_reason: 'stop' },
    ];
    return [toPiece(JSON.stringify({ id, object: 'chat.completion', model: 'm', choices, usage }))];
  }
  const chunk = (members: object) =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', model: 'm', ...members })}\n\n`;
  const texts = Array.from({ length: events }, (_, at) =>
    toPiece(
      chunk({ choices: [{ index: 0, delta: { content: `${id}:${at} ${padding}` }, finish_reason: null }] }),
    ),
  );
  return [
    ...texts,
    toPiece(chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })),
    ...(withUsage ? [toPiece(chunk({ choices: [], usage }), true)] : []),
    toPiece('data: [DONE]\n\n'),
  ];
}

function toPiece(text: string, isUsage = false): AnswerPiece {
  return { bytes: Buffer.from(text), isUsage };
}
