import { z } from 'zod';
import { json } from '../content.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';
import { replicaSchema, toReplicaView, waitingSchema } from '../views.ts';

/** GET /admin/replicas. */
export const listReplicas = defineRoute({
  method: 'GET',
  path: '/admin/replicas',
  operationId: 'listReplicas',
  summary: 'Every replica: what is configured and known of it, its drain and what it has in flight',
  answer: {
    description: 'The replicas, in the order of the configuration; then those that are being removed.',
    content: json(
      z.object({
        replicas: z.array(replicaSchema),
        waiting: waitingSchema,
      }),
    ),
  },
  handle: (_call, { registry, fleet }) => ({
    body: {
      replicas: registry.all.map((replica) => toReplicaView(replica, fleet)),
      waiting: registry.waiting,
    },
  }),
});

/** GET /admin/replicas/{name}. */
export const showReplica = defineRoute({
  method: 'GET',
  path: '/admin/replicas/{name}',
  params: { name: "The replica's name." },
  operationId: 'showReplica',
  summary: 'One replica, asked now whether it answers',
  description:
    'The gateway asks the replica for `health.path`, for five seconds at most, and tells in `reachability` what came of ' +
    'it. A drained one is not asked.',
  answer: { description: 'The replica.', content: json(z.object({ replica: replicaSchema })) },
  refusals: ['replica_not_found'],
  async handle({ params: { name } }, { registry, fleet, ask }) {
    const replica = registry.find(name);
    if (replica === undefined) return new Refusal('replica_not_found');
    await ask(replica);
    return { body: { replica: toReplicaView(replica, fleet) } };
  },
});
