import { z } from 'zod';
import { toShownName } from '#otel/base';
import { defineRoute, json } from '../route.ts';
import { replicaNotFound } from '../unknown-name.ts';

/** POST /admin/replicas/{name}/probe. */
export const probeReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/probe',
  params: { name: "The replica's name." },
  role: 'operator',
  operationId: 'probeReplica',
  summary: 'Ask a replica directly whether it is ready to serve, drained or not',
  description:
    'The gateway requests `/v1/models` from the replica, with its own key and TLS, and with `completion` also one small ' +
    'answer. What it finds changes nothing. Each request may take ten seconds.',
  query: {
    completion: z
      .enum(['true', 'false'])
      .default('false')
      .describe('`true`: it must also answer a request for one token, or for an embedding.'),
  },
  response: {
    description: 'What the replica answered.',
    content: json(
      z.object({
        ready: z.boolean(),
        problem: z.string().nullable().describe('Why it is not ready, as a phrase.'),
        models: z.array(z.string()).readonly().nullable(),
        completed_by: z.string().nullable().describe('The path that answered the small request.'),
      }),
    ),
  },
  errors: ['replica_not_found'],
  async handle({ params: { name }, query }, { registry, probeEngine }) {
    const replica = registry.find(name);
    if (replica === undefined) return replicaNotFound(name, registry);
    const { problem, models, completedBy } = await probeEngine(replica, query.completion === 'true');
    return {
      body: {
        ready: problem === null,
        problem: problem === null ? null : toShownName(problem),
        models: models?.map((model) => toShownName(model)) ?? null,
        completed_by: completedBy,
      },
    };
  },
});
