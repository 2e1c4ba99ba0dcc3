import { z } from 'zod';
import { changeDrain, type DrainResult, warnOfPropagation } from '../change-drain.ts';
import { json } from '../content.ts';
import { askForLastReplica, warnOfLastReplica } from '../last-replica.ts';
import { durationParam, textParam } from '../query.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';
import { toStanding } from '../standing.ts';
import { absentReplicaSchema, replicaSchema, toAbsentReplicaView, toReplicaView } from '../views.ts';

const MAX_WAIT_MS = 3_600_000;
const MAX_REASON_CHARS = 256;

const drainSchema = z
  .object({
    replica: z
      .union([replicaSchema, absentReplicaSchema])
      .describe('An undrain also takes the name of a replica that is not there now, and has a drain.'),
    was_drained: z.boolean().describe('The state before the call.'),
    stored: z.boolean().describe('Whether it is on disk. If not, it is in force, and a restart forgets it.'),
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
    unless_last: z
      .enum(['true', 'false'])
      .default('false')
      .describe(
        '`true`: the drain is refused if some model would be left without a replica that answers. The others are ' +
          'asked now. One that is drained already stays so.',
      ),
  },
  answer: { description: 'The drain is in force.', content: json(drainSchema) },
  refusals: ['replica_not_found', 'last_replica', 'too_many_waits'],
  async handle({ params: { name }, query, signal }, services) {
    const { registry, fleet, waits } = services;
    const replica = registry.find(name);
    if (replica === undefined) return new Refusal('replica_not_found');
    const { wait: timeoutMs = 0 } = query;
    if (timeoutMs > 0 && waits.isFull) return new Refusal('too_many_waits');
    if (query.unless_last === 'true' && !replica.drain.drained) {
      const findModelsLeft = await askForLastReplica(replica, registry.replicas, services.ask);
      if (registry.find(name) !== replica) return new Refusal('replica_not_found');
      // From here to the drain nothing else runs: of two such calls the second sees what the first did.
      const models = findModelsLeft();
      if (models !== null) return new Refusal('last_replica', { message: toLastReplicaMessage(models) });
    }
    const result = await changeDrain(replica, 'drain', query.reason, services);
    const isOver = () => !replica.drain.drained || toStanding(replica, fleet).isSafeToStop === true;
    await waits.wait(replica, isOver, { timeoutMs, signal });
    const warnings = [...result.warnings, warnOfLastReplica(replica, services.registry.replicas)];
    return { body: toDrainView('drain', () => toReplicaView(replica, fleet), { ...result, warnings }) };
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
    'A name whose replica is not there now can be undrained too, if it was ever drained: the replica takes its turns ' +
    'when it comes. Undraining what is not drained keeps its time, and its reason unless there is another one; in a ' +
    'fleet it overtakes an earlier drain that this gateway has not heard of. In a fleet this takes a second, or 6.3 s ' +
    'while a gateway or the shared state cannot be reached: nobody may still believe the drain.',
  query: { reason: reason.optional() },
  answer: { description: 'The replica takes its turns.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  async handle({ params: { name }, query }, services) {
    const { registry, drains, refresh } = services;
    const replica = registry.find(name);
    if (replica === undefined && !drains.isRemembered(name)) return new Refusal('replica_not_found');
    // It may have come back with other models.
    if (replica !== undefined) await refresh(replica);
    const inflight = registry.inflightByName().get(name) ?? 0;
    const result = await changeDrain(replica ?? { name, inflight }, 'undrain', query.reason, services);
    // It may have come or gone meanwhile.
    const view = () => {
      const present = registry.find(name);
      return present === undefined
        ? toAbsentReplicaView(name, inflight, drains)
        : toReplicaView(present, services.fleet);
    };
    return { body: toDrainView('undrain', view, result) };
  },
});

function toLastReplicaMessage(models: string): string {
  return `Nothing was drained: no other replica answers for ${models}.`;
}

function toDrainView(
  action: 'drain' | 'undrain',
  toView: () => z.output<typeof drainSchema>['replica'],
  result: DrainResult,
): z.output<typeof drainSchema> {
  const propagation = result.propagation();
  const warnings = [...result.warnings, propagation === null ? null : warnOfPropagation(action, propagation)];
  const warning = warnings.filter((each) => each !== null).join(' ');
  return {
    replica: toView(),
    was_drained: result.wasDrained,
    stored: result.isStored,
    ...(propagation ?? {}),
    ...(warning === '' ? {} : { warning }),
  };
}
