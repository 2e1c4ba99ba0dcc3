import { z } from 'zod';
import { json } from '../content.ts';
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
