import { z } from 'zod';
import { mapInTurns } from '../in-turns.ts';
import { defineRoute, json } from '../route.ts';
import {
  absentReplicaSchema,
  replicaSchema,
  toRemovedReplicaJson,
  toReplicaJson,
  waitingSchema,
} from '../schemas.ts';
import { sourceSchema, toSourceJson } from '../source-schema.ts';
import { replicaNotFound } from '../unknown-name.ts';

/** GET /admin/replicas. */
export const listReplicas = defineRoute({
  method: 'GET',
  path: '/admin/replicas',
  operationId: 'listReplicas',
  summary: 'All replicas: configuration, state, drain and requests in flight',
  response: {
    description: 'The replicas in the order of the configuration, then those that are being removed.',
    content: json(
      z.object({
        replicas: z.array(replicaSchema),
        sources: z
          .array(sourceSchema)
          .describe(
            'The entries with `kubernetes` or `dns`, and whether these answer, in the order of the configuration.',
          ),
        waiting: waitingSchema,
      }),
    ),
  },
  handle: async (_call, { registry, sources, fleet }) => ({
    body: {
      replicas: await mapInTurns(registry.all, (replica) => toReplicaJson(replica, fleet)),
      sources: sources().map(toSourceJson),
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
  summary: 'One replica, after a probe',
  description:
    'The gateway requests `health.path` from the replica, for at most five seconds, and returns the result in ' +
    '`reachability`. It does not probe a drained replica, or one that is being removed. In a fleet a replica that this ' +
    'gateway removed up to ten minutes ago is shown with what other gateways have in flight there.',
  response: {
    description: 'The replica.',
    content: json(z.object({ replica: z.union([replicaSchema, absentReplicaSchema]) })),
  },
  errors: ['replica_not_found'],
  async handle({ params: { name } }, { registry, drains, fleet, ask }) {
    const replica = registry.findAny(name);
    if (replica === undefined) {
      if (fleet === null || !registry.hasRemoved(name)) return replicaNotFound(name, registry);
      return { body: { replica: toRemovedReplicaJson(name, drains, fleet) } };
    }
    if (!replica.isRemoving) await ask(replica);
    return { body: { replica: toReplicaJson(replica, fleet) } };
  },
});
