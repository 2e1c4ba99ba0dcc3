import { z } from 'zod';
import type { RegisteredReplica } from '../../replicas/registry.ts';
import type { AdminServices } from '../admin-services.ts';
import { json } from '../content.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute, type Reply } from '../route.ts';
import { replicaSchema, toReplicaView } from '../views.ts';

const drainSchema = z
  .object({
    replica: replicaSchema,
    was_drained: z.boolean().describe('The state before the call.'),
    warning: z.string().optional().describe('What the caller should know although the call succeeded.'),
  })
  .meta({ id: 'Drain' });

const REPLICA_NAME = { name: "The replica's name." } as const;

type DrainView = z.output<typeof drainSchema>;

/** POST /admin/replicas/{name}/drain. */
export const drainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/drain',
  params: REPLICA_NAME,
  operationId: 'drainReplica',
  summary: 'Send a replica no new requests',
  answer: { description: 'The drain is in force.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  handle: ({ params }, services) => setDrained(params.name, true, services),
});

/** POST /admin/replicas/{name}/undrain. */
export const undrainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/undrain',
  params: REPLICA_NAME,
  operationId: 'undrainReplica',
  summary: 'Let a drained replica take its turns again',
  answer: { description: 'The replica takes its turns.', content: json(drainSchema) },
  refusals: ['replica_not_found'],
  handle: ({ params }, services) => setDrained(params.name, false, services),
});

async function setDrained(
  name: string,
  drained: boolean,
  services: AdminServices,
): Promise<Reply<DrainView>> {
  const replica = services.registry.find(name);
  return replica === undefined
    ? new Refusal('replica_not_found')
    : { body: await changeDrain(replica, drained, services) };
}

/**
 * Drains or undrains, then answers once the state is on disk. The drain itself is in force before: an answer
 * that cannot be stored says so, and does not take the drain back.
 */
async function changeDrain(
  replica: RegisteredReplica,
  drained: boolean,
  { drains, onAction, log }: AdminServices,
): Promise<DrainView> {
  const startEpochMs = Date.now();
  const action = drained ? 'drain' : 'undrain';
  const { name } = replica;
  const change = drains.set(name, drained, { reason: null, at: new Date(startEpochMs).toISOString() });
  const was_drained = change.before.drained;
  const { inflight } = replica;
  log.info({ action, replica: name, was_drained, inflight }, action);
  // Whoever decided to send before the drain has sent when this is over.
  const [stored] = await Promise.allSettled([change.stored, drains.confirm(name)]);
  onAction({ action, replica: name, wasDrained: was_drained, inflight, startEpochMs });
  const answer = { replica: toReplicaView(replica), was_drained };
  if (stored.status === 'fulfilled') return answer;
  log.error({ err: stored.reason, replica: name }, 'drain state not stored');
  return { ...answer, warning: 'The state is in force but could not be stored: a restart forgets it.' };
}
