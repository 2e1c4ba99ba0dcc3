import { z } from 'zod';
import { parseJson } from '#base/parsed';
import { rolloutFacts } from '#rollout-board/facts';
import type { KnownRollout } from './rules.ts';

const entry = z.object({
  facts: rolloutFacts,
  token_name: z.string().max(256).nullable(),
  /** For how long its driver had not been heard when this was written. Durations need no common clock. */
  silent_ms: z.number().min(0),
});

/** What gateways tell each other, and what is on disk. `hello`: who sends it knows nothing yet, and asks for the rest. */
const boardText = z.object({
  version: z.literal(1),
  hello: z.boolean().default(false),
  rollouts: z.array(z.unknown()).max(1_000),
});

/** What a text says: the rollouts that are legible. */
export interface BoardContents {
  readonly isHello: boolean;
  readonly rollouts: readonly KnownRollout[];
  readonly unreadableCount: number;
}

/** Prints rollouts. `nowMs`: monotonic. */
export function printBoard(rollouts: readonly KnownRollout[], nowMs: number, isHello = false): string {
  const entries = rollouts.map(({ facts, tokenName, heardMs }) => ({
    facts,
    token_name: tokenName,
    silent_ms: Math.max(0, Math.round(nowMs - heardMs)),
  }));
  return JSON.stringify({ version: 1, ...(isHello ? { hello: true } : {}), rollouts: entries });
}

/** Parses rollouts; null if the text is of something else, or of another version. */
export function parseBoard(text: string, nowMs: number): BoardContents | null {
  const parsed = boardText.safeParse(parseJson(text));
  if (!parsed.success) return null;
  const { hello, rollouts } = parsed.data;
  const read = rollouts.map((each) => entry.safeParse(each));
  const legible = read.flatMap(({ data }) =>
    data === undefined
      ? []
      : [{ facts: data.facts, tokenName: data.token_name, heardMs: nowMs - data.silent_ms }],
  );
  return { isHello: hello, rollouts: legible, unreadableCount: read.length - legible.length };
}
