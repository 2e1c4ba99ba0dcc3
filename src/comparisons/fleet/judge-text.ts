import { z } from 'zod';
import { parseJson } from '#base/parsed';
import { BETS, type Comparison } from '#verdict';

/** A question that somebody has asked a gateway, as it tells the others. */
export interface FleetQuestion {
  /** Of this question at this gateway. */
  readonly id: string;
  readonly candidate: string;
  readonly baseline: string | null;
  /** How long ago the requests began that are meant. Durations need no common clock. */
  readonly sinceAgoMs: number;
}

/** What a gateway knows of a question by its own requests. */
export interface FleetFacts {
  readonly id: string;
  readonly comparison: Comparison;
}

/** What one gateway tells the others. */
export interface JudgeMessage {
  /** Who tells it. After a restart its second half is another one: it has seen other requests. */
  readonly gateway: string;
  readonly questions: readonly FleetQuestion[];
  readonly facts: readonly FleetFacts[];
}

/** As many as a gateway answers at the same time. */
const MAX_ITEMS = 64;
const MAX_SELECTOR_CHARS = 8_192;

const id = z.string().regex(/^[0-9a-f]{16}$/);
const count = z.int().min(0);
const selector = z.string().max(MAX_SELECTOR_CHARS);

const evidence = z
  .record(z.string(), z.array(z.number()))
  .refine((claims) => Object.entries(claims).every(([claim, bets]) => BETS.get(claim) === bets.length));

const tally = z.object({
  answered: count,
  errors: count,
  finishes: z.record(z.string().max(64), count).refine((finishes) => Object.keys(finishes).length <= 64),
});

const comparison = z.object({
  evidence,
  figures: z.object({
    differences: z.partialRecord(
      z.enum(['first_token', 'gaps', 'duration', 'lengths', 'cached']),
      z.object({ sum: z.number(), weight: z.number().min(0) }),
    ),
    own: tally,
    peers: tally,
  }),
  blocks: count,
  own: count,
  peers: count,
});

const message = z.object({
  version: z.literal(1),
  gateway: id,
  questions: z
    .array(
      z.object({
        id,
        candidate: selector,
        baseline: selector.nullable(),
        since_ago_ms: z.number().min(0),
      }),
    )
    .max(MAX_ITEMS),
  facts: z.array(z.object({ id, comparison })).max(MAX_ITEMS),
});

/** Prints a message. */
export function printJudgeMessage({ gateway, questions, facts }: JudgeMessage): string {
  return JSON.stringify({
    version: 1,
    gateway,
    questions: questions.map(({ sinceAgoMs, ...question }) => ({ ...question, since_ago_ms: sinceAgoMs })),
    facts,
  });
}

/** Parses a message; null if it is none, or of another version. */
export function parseJudgeMessage(text: string): JudgeMessage | null {
  const { data } = message.safeParse(parseJson(text));
  if (data === undefined) return null;
  const questions = data.questions.map(({ since_ago_ms: sinceAgoMs, ...question }) => ({
    ...question,
    sinceAgoMs,
  }));
  return { gateway: data.gateway, questions, facts: data.facts };
}
