import { z } from 'zod';
import type { RegisteredReplica } from '../../replicas/registry.ts';
import type { AdminServices } from '../admin-services.ts';
import { changeDrain, type DrainResult, warnOfSpread } from '../change-drain.ts';
import { json } from '../content.ts';
import { warnOfLastReplica } from '../last-replica.ts';
import { durationParam, textParam } from '../query.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';
import { toStanding } from '../standing.ts';
import { replicaSchema, toReplicaView } from '../views.ts';
import { waitUntilSafe } from '../wait-until-safe.ts';

const MAX_WAIT_MS = 3_600_000;
const MAX_REASON_CHARS = 256;

const drainSchema = z
  .object({
    replica: replicaSchema,
    was_drained: z.boolean().describe('The state before the call.'),
    scope: z
      .enum(['fleet', 'local'])
      .optional()
      .describe(
        'In a fleet: `fleet` when this gateway has read the shared state and written to it since the call; `local` ' +
          'while it cannot: the others hear of it later.',
      ),
    overtaken: z
      .boolean()
      .optional()
      .describe(
        'In a fleet: a later call for the opposite, perhaps on another gateway, holds instead. `drained` tells how ' +
          'the replica stands.',
      ),
    unconfirmed: z
      .array(z.string())
      .readonly()
      .optional()
      .describe(
        'In a fleet: the gateways that have not said that they go by its state. They have 2 s, or `wait`.',
      ),
    warning: z.string().optional().describe('What the caller should know although the call succeeded.'),
  })
  .meta({ id: 'Drain' });

const params = { name: "The replica's name." } as const;

const reason = textParam(
  MAX_REASON_CHARS,
  'Why. It is shown with the replica, logged, and in the span of the action.',
);

/** POST /admin/replicas/{name}/drain. */
export const drainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/drain',
  params,
  operationId: 'drainReplica',
  summary: 'Send a replica no new requests',
  description:
    'Once this has answered, no new request reaches the replica from here, nor from any gateway of the fleet that ' +
    'is not named in `unconfirmed`; what it has in flight goes on to its end. ' +
    'Draining what is drained keeps its time, and its reason unless there is another one; in a fleet it overtakes ' +
    'an earlier undrain that this gateway has not heard of. It works without the replica, and lasts until it is ' +
    'undrained, also over restarts.',
  query: {
    wait: durationParam(
      MAX_WAIT_MS,
      'How long to wait with the answer for the replica to become idle. The answer is a 200 whether it has or not: ' +
        'read `safe_to_stop`. An undrain ends the wait too.',
    ).optional(),
    reason: reason.optional(),
  },
  answer: { description: 'The drain is in force.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  async handle({ params: { name }, query, signal }, services) {
    const replica = services.registry.find(name);
    if (replica === undefined) return new Refusal('replica_not_found');
    const result = await changeDrain(replica, 'drain', query.reason, services);
    await waitUntilSafe(watchable(replica, services), { timeoutMs: query.wait ?? 0, signal });
    const warnings = [...result.warnings, warnOfLastReplica(replica, services.registry.replicas)];
    return { body: toDrainView(replica, 'drain', { ...result, warnings }, services) };
  },
});

/** POST /admin/replicas/{name}/undrain. */
export const undrainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/undrain',
  params,
  operationId: 'undrainReplica',
  summary: 'Let a drained replica take its turns again',
  description:
    'Undraining what is not drained keeps its time, and its reason unless there is another one; in a fleet it ' +
    'overtakes an earlier drain that this gateway has not heard of. In a fleet this takes a second, or 6.3 s ' +
    'while a gateway or the shared state cannot be reached: nobody may still believe the drain.',
  query: { reason: reason.optional() },
  answer: { description: 'The replica takes its turns.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  async handle({ params: { name }, query }, services) {
    const replica = services.registry.find(name);
    if (replica === undefined) return new Refusal('replica_not_found');
    // It may have come back with other models.
    await services.refresh(replica);
    const result = await changeDrain(replica, 'undrain', query.reason, services);
    return { body: toDrainView(replica, 'undrain', result, services) };
  },
});

/** The replica as a wait looks at it. */
function watchable(replica: RegisteredReplica, { fleet }: AdminServices) {
  return {
    get drain() {
      return replica.drain;
    },
    get isSafeToStop() {
      return toStanding(replica, fleet).isSafeToStop;
    },
  };
}

function toDrainView(
  replica: RegisteredReplica,
  action: 'drain' | 'undrain',
  result: DrainResult,
  { fleet }: AdminServices,
): z.output<typeof drainSchema> {
  const spread = result.spread();
  const warnings = [...result.warnings, spread === null ? null : warnOfSpread(action, spread)];
  const warning = warnings.filter((each) => each !== null).join(' ');
  return {
    replica: toReplicaView(replica, fleet),
    was_drained: result.wasDrained,
    ...(spread ?? {}),
    ...(warning === '' ? {} : { warning }),
  };
}
