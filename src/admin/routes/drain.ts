import { z } from 'zod';
import type { RegisteredReplica } from '../../replicas/registry.ts';
import type { AdminServices } from '../admin-services.ts';
import { json } from '../content.ts';
import { warnOfLastReplica } from '../last-replica.ts';
import { durationParam, textParam } from '../query.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';
import { replicaSchema, toReplicaView } from '../views.ts';
import { waitUntilSafe } from '../wait-until-safe.ts';

const MAX_WAIT_MS = 3_600_000;
const MAX_REASON_CHARS = 256;

const drainSchema = z
  .object({
    replica: replicaSchema,
    was_drained: z.boolean().describe('The state before the call.'),
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
    'Once this has answered, no new request reaches the replica; what it has in flight goes on to its end. ' +
    'Draining what is drained changes nothing, but its reason if there is another one. It works without the ' +
    'replica, and lasts until it is undrained, also over restarts.',
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
    const { wasDrained, warnings } = await changeDrain(replica, 'drain', query.reason, services);
    await waitUntilSafe(replica, { timeoutMs: query.wait ?? 0, signal });
    const warning = [...warnings, warnOfLastReplica(replica, services.registry.replicas)];
    return { body: toDrainView(replica, wasDrained, warning) };
  },
});

/** POST /admin/replicas/{name}/undrain. */
export const undrainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/undrain',
  params,
  operationId: 'undrainReplica',
  summary: 'Let a drained replica take its turns again',
  description: 'Undraining what is not drained changes nothing, but its reason if there is another one.',
  query: { reason: reason.optional() },
  answer: { description: 'The replica takes its turns.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  async handle({ params: { name }, query }, services) {
    const replica = services.registry.find(name);
    if (replica === undefined) return new Refusal('replica_not_found');
    // It may have come back with other models.
    await services.refresh(replica);
    const { wasDrained, warnings } = await changeDrain(replica, 'undrain', query.reason, services);
    return { body: toDrainView(replica, wasDrained, warnings) };
  },
});

/** What there is to know although the action succeeded; null where there is nothing. */
type Warnings = readonly (string | null)[];

/**
 * Drains or undrains; resolves once the state is on disk and every worker goes by it. It is in force before: what
 * does not succeed of the rest is a warning, and takes nothing back.
 */
async function changeDrain(
  replica: RegisteredReplica,
  action: 'drain' | 'undrain',
  why: string | null | undefined,
  { drains, onAction, log }: AdminServices,
): Promise<{ readonly wasDrained: boolean; readonly warnings: Warnings }> {
  const startEpochMs = Date.now();
  const { name } = replica;
  const at = new Date(startEpochMs).toISOString();
  const { before, after, stored } = drains.set(name, action === 'drain', { reason: why ?? null, at });
  const done = { action, replica: name, inflight: replica.inflight, reason: after.reason };
  log.info({ ...done, was_drained: before.drained }, action);
  const storing = stored.then(
    () => true,
    (error) => {
      log.error({ err: error, replica: name }, 'drain state not stored');
      return false;
    },
  );
  // Whoever decided to send before the drain has sent when every worker has answered.
  const [isStored, silentWorkers] = await Promise.all([storing, drains.confirm(name)]);
  onAction({ ...done, wasDrained: before.drained, startEpochMs });
  if (silentWorkers.length > 0) log.error({ replica: name, workers: silentWorkers }, 'drain not confirmed');
  return {
    wasDrained: before.drained,
    warnings: [
      isStored ? null : 'The state is in force but could not be stored: a restart forgets it.',
      silentWorkers.length === 0
        ? null
        : `No answer yet from workers ${silentWorkers.join(', ')}: a request they had begun may still come.`,
    ],
  };
}

function toDrainView(
  replica: RegisteredReplica,
  wasDrained: boolean,
  warnings: Warnings,
): z.output<typeof drainSchema> {
  const warning = warnings.filter((each) => each !== null).join(' ');
  return {
    replica: toReplicaView(replica),
    was_drained: wasDrained,
    ...(warning === '' ? {} : { warning }),
  };
}
