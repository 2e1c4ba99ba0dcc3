import { z } from 'zod';
import { hasVanished, type KnownRollout } from '#rollout-board';
import { type RolloutFacts, rolloutFacts } from '#rollout-board/facts';

const { shape } = rolloutFacts;
const count = () => z.int().min(0);

const summaryShape = {
  id: z.string().describe('The mark that is in the reasons of its drains, behind `rollout-`.'),
  trace_id: z.string(),
  state: z
    .enum(['running', 'paused', 'vanished', 'stopped', 'aborted', 'done'])
    .describe(
      '`vanished`: it should be under way, and its driver has not been heard for 30 seconds. `stopped`: it can go on. ' +
        '`aborted` and `done`: it cannot.',
    ),
  asked: z
    .enum(['pause', 'continue', 'abort'])
    .nullable()
    .describe('What somebody has asked and the driver has not carried out yet.'),
  asked_by: z.string().nullable().describe('Who asked last: the name of a token.'),
  sentence: z.string().describe('How far it is, in one line.'),
  problem: shape.problem.describe('Why it stopped, and what to do.'),
  run: z.int().min(1).describe('Greater by one each time that it went on after it had stopped.'),
  driver: z.object({
    user: z.string(),
    host: z.string(),
    pid: count(),
    token_name: z.string().nullable().describe('The name of the token with which it began.'),
    heard_at: z.iso.datetime().describe('When it was last heard, by any gateway of the fleet.'),
  }),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable().describe('When it stopped or was over; null while it is under way.'),
  replica_count: count(),
  done_count: count().describe('Replicas that are done.'),
};

/** A rollout in the list of them. */
export const rolloutSummarySchema = z.object(summaryShape).meta({ id: 'RolloutSummary' });

/** A rollout with its replicas. */
export const rolloutSchema = z
  .object({
    ...summaryShape,
    root_span_id: z.string(),
    given_up: z.array(z.string()).readonly().describe('The trace ids of rollouts that it replaces.'),
    plan: shape.plan.describe('How it is carried out, without the commands.'),
    replicas: z.array(shape.replicas.unwrap().element.omit({ seq: true })).readonly(),
  })
  .meta({ id: 'Rollout' });

/** A rollout in the list, as it is sent. */
export type RolloutSummaryJson = z.output<typeof rolloutSummarySchema>;

/** A rollout with its replicas, as it is sent. */
export type RolloutJson = z.output<typeof rolloutSchema>;

/** The clocks: monotonic, and milliseconds since 1970. */
export interface Clocks {
  readonly nowMs: number;
  readonly epochMs: number;
}

/** Converts a rollout to the shape of the list. */
export function toRolloutSummary(known: KnownRollout, { nowMs, epochMs }: Clocks): RolloutSummaryJson {
  const { facts, tokenName, heardMs } = known;
  const { id, trace_id, sentence, problem, run, driver, started_at, ended_at, replica_count } = facts;
  return {
    id,
    trace_id,
    state: hasVanished(known, nowMs) ? 'vanished' : facts.state,
    asked: toAsked(facts),
    asked_by: facts.ask.by,
    sentence,
    problem,
    run,
    driver: {
      user: driver.user,
      host: driver.host,
      pid: driver.pid,
      token_name: tokenName,
      heard_at: new Date(epochMs - Math.max(0, nowMs - heardMs)).toISOString(),
    },
    started_at,
    ended_at,
    replica_count,
    done_count: facts.replicas.filter(({ stage }) => stage === 'done').length,
  };
}

/** Converts a rollout with its replicas. */
export function toRolloutJson(known: KnownRollout, clocks: Clocks): RolloutJson {
  const { root_span_id, given_up, plan, replicas } = known.facts;
  return {
    ...toRolloutSummary(known, clocks),
    root_span_id,
    given_up,
    plan,
    replicas: replicas.map(({ seq: _, ...replica }) => replica),
  };
}

function toAsked({ state, ask }: RolloutFacts): 'pause' | 'continue' | 'abort' | null {
  if (state === 'running' && ask.kind !== 'go') return ask.kind;
  if (state !== 'paused') return null;
  return ask.kind === 'pause' ? null : ask.kind === 'go' ? 'continue' : 'abort';
}
