import { z } from 'zod';
import type { ReportOutcome, RolloutBoard } from '#rollout-board';
import { readMark, rolloutFacts, toReasonOfLeft } from '#rollout-board/facts';
import type { AdminCollaborators } from '../admin-collaborators.ts';
import { AdminError } from '../admin-error.ts';
import { changeDrain } from '../drains/change-drain.ts';
import {
  type Clocks,
  rolloutSchema,
  rolloutSummarySchema,
  toRolloutJson,
  toRolloutSummary,
} from '../rollouts/rollout-json.ts';
import { defineRoute, json, type Route } from '../route.ts';

const params = { id: 'The id of the rollout.' } as const;

const clocks = (): Clocks => ({ nowMs: performance.now(), epochMs: Date.now() });

/** GET /admin/rollouts. */
export const listRollouts = defineRoute({
  method: 'GET',
  path: '/admin/rollouts',
  operationId: 'listRollouts',
  summary: 'The rollouts that are known, the newest first',
  description:
    'Those under way, and the latest ones that are not: at most 50. In a fleet those of all gateways. `gateway rollout` ' +
    'tells them.',
  response: {
    description: 'The rollouts.',
    content: json(z.object({ rollouts: z.array(rolloutSummarySchema).readonly() })),
  },
  handle(_, { rollouts }) {
    return { body: { rollouts: rollouts.rollouts.map((known) => toRolloutSummary(known, clocks())) } };
  },
});

/** GET /admin/rollouts/{id}. */
export const showRollout = defineRoute({
  method: 'GET',
  path: '/admin/rollouts/{id}',
  params,
  operationId: 'showRollout',
  summary: 'One rollout with its replicas',
  response: { description: 'The rollout.', content: json(rolloutSchema) },
  errors: ['rollout_not_found'],
  handle({ params: { id } }, { rollouts }) {
    const known = rollouts.find(id);
    return known === null ? new AdminError('rollout_not_found') : { body: toRolloutJson(known, clocks()) };
  },
});

/** POST /admin/rollouts/{id}/pause. */
export const pauseRollout = defineAsk(
  'pause',
  'Let a rollout begin no further replica',
  'The replicas that are under way go to their ends, so that none is away for longer than it must. The driver hears of it ' +
    'within a second or two.',
);

/** POST /admin/rollouts/{id}/continue. */
export const continueRollout = defineAsk(
  'continue',
  'Let a rollout that was paused go on',
  'One that has stopped goes on where it was driven, or elsewhere: with `gateway rollout --resume`.',
);

/** POST /admin/rollouts/{id}/abort. */
export const abortRollout = defineAsk(
  'abort',
  'End a rollout for good',
  'Its command is ended. What is drained stays drained, and what was restarted stays so. One that nobody drives is over at ' +
    'once.',
);

/** POST /admin/rollouts/{id}/report. */
export const reportRollout = defineRoute({
  method: 'POST',
  path: '/admin/rollouts/{id}/report',
  params,
  role: 'operator',
  operationId: 'reportRollout',
  summary: 'Tell how a rollout is, and hear what is asked of it',
  description:
    'What drives a rollout calls it once per second. The body has the replicas alone that have changed; while the answer says ' +
    '`complete: false`, the gateway does not know all of them.',
  body: rolloutFacts,
  response: {
    description: 'What is asked of the rollout.',
    content: json(z.object({ ask: rolloutFacts.shape.ask, complete: z.boolean() })),
  },
  errors: ['rollout_conflict', 'rollout_driven', 'rollout_taken_over', 'rollout_over'],
  handle({ params: { id }, body, caller }, { rollouts }) {
    if (body.id !== id) {
      return new AdminError('invalid_request', {
        param: 'body.id',
        message: 'body.id is not that of the path.',
      });
    }
    const outcome = rollouts.report(body, caller?.name ?? null);
    if (outcome.kind !== 'taken') return toAdminError(outcome);
    return { body: { ask: outcome.rollout.facts.ask, complete: outcome.isComplete } };
  },
});

function defineAsk(action: 'pause' | 'continue' | 'abort', summary: string, description: string): Route {
  return defineRoute({
    method: 'POST',
    path: `/admin/rollouts/{id}/${action}` as const,
    params,
    role: 'operator',
    operationId: `${action}Rollout`,
    summary,
    description,
    response: { description: 'The rollout, of which it is asked.', content: json(rolloutSchema) },
    errors: ['rollout_not_found', 'rollout_over'],
    async handle({ params: { id }, caller }, collaborators) {
      const { rollouts, log } = collaborators;
      const tokenName = caller?.name ?? null;
      const known = rollouts.ask(id, action === 'continue' ? 'go' : action, tokenName);
      if (known === 'rollout_over') return toOver(rollouts, id);
      if (known === 'rollout_not_found') return new AdminError(known);
      log.info({ action: `rollout_${action}`, rollout: id, token_name: tokenName }, `rollout ${action}`);
      // Nobody else takes its mark off the drains.
      if (known.facts.state === 'aborted') await releaseDrains(id, tokenName, collaborators);
      return { body: toRolloutJson(known, clocks()) };
    },
  });
}

/** The replicas that a rollout has drained stay drained, and hold up no other rollout. */
async function releaseDrains(
  id: string,
  tokenName: string | null,
  collaborators: AdminCollaborators,
): Promise<void> {
  for (const replica of collaborators.registry.replicas) {
    const { drained, reason } = replica.drain;
    if (!drained || readMark(reason) !== id) continue;
    await changeDrain(replica, 'drain', { reason: toReasonOfLeft(reason), tokenName }, collaborators);
  }
}

function toOver(rollouts: RolloutBoard, id: string): AdminError {
  const state = rollouts.find(id)?.facts.state ?? 'over';
  const hint = state === 'stopped' ? ' `gateway rollout --resume` goes on.' : '';
  return new AdminError('rollout_over', { message: `This rollout is ${state}.${hint}` });
}

const MAX_LISTED = 8;

function toAdminError(outcome: Exclude<ReportOutcome, { readonly kind: 'taken' }>): AdminError {
  switch (outcome.kind) {
    case 'conflict': {
      const { facts } = outcome.other;
      const names = outcome.names.slice(0, MAX_LISTED).join(', ');
      return new AdminError('rollout_conflict', {
        message:
          `The rollout ${facts.id} of ${toDriverText(facts)}, which began at ${facts.started_at}, is at work on these ` +
          `replicas too: ${names}. Wait for its end, or abort it: gateway rollouts abort ${facts.id}`,
      });
    }
    case 'driven': {
      const { facts } = outcome.known;
      return new AdminError('rollout_driven', {
        message: `${toDriverText(facts)} drives this rollout: stop it there, or abort it`,
      });
    }
    case 'taken_over': {
      const { facts } = outcome.known;
      return new AdminError('rollout_taken_over', {
        message: `This rollout has gone on elsewhere: ${toDriverText(facts)} drives it, or did`,
      });
    }
    case 'over': {
      const { facts } = outcome.known;
      return new AdminError('rollout_over', {
        message: `This rollout is over: ${facts.sentence}. Begin another one with --new`,
      });
    }
  }
}

function toDriverText({
  driver,
}: {
  readonly driver: { readonly user: string; readonly host: string };
}): string {
  return `${driver.user}@${driver.host}`;
}
