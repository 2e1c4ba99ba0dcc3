import { z } from 'zod';
import { AdminError } from '../admin-error.ts';
import { askForLastReplica } from '../drains/remaining-replicas.ts';
import { durationParam, percentParam } from '../query-params.ts';
import { defineRoute, json } from '../route.ts';
import { replicaSchema, toReplicaJson } from '../schemas.ts';
import { replicaNotFound } from '../unknown-name.ts';

const MAX_FOR_MS = 86_400_000;
const DEFAULT_FOR_MS = 3_600_000;

const shadowSchema = z
  .object({
    replica: replicaSchema,
    was_shadow: z.boolean().describe('Whether it was a shadow before the call.'),
    warning: z.string().optional().describe('What the caller should know although the call succeeded.'),
  })
  .meta({ id: 'Shadow' });

const params = { name: "The replica's name." } as const;

/** POST /admin/replicas/{name}/shadow. */
export const beginShadow = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/shadow',
  params,
  role: 'operator',
  operationId: 'beginShadow',
  summary: 'Make a replica a shadow for a while',
  description:
    'After the response, no client of this gateway gets an answer of the replica: a share of the live requests of its ' +
    'models is copied to it, and its answers are compared and dropped. A drained replica stays drained for clients, and ' +
    'gets copies all the same. It ends with `unshadow`, with a drain, after `for`, and with the gateway. Calling it again ' +
    'moves the end. It is refused if a model would be left without a replica that answers.',
  query: {
    // Without copies it would serve nobody, and never be judged.
    requests: percentParam(100, 'The share of the live requests of its models of which it gets a copy.')
      .refine((share) => share > 0, 'more than 0%, such as 10%')
      .optional(),
    for: durationParam(MAX_FOR_MS, 'How long it is a shadow, if nothing ends that before.').optional(),
  },
  response: { description: 'The replica is a shadow.', content: json(shadowSchema) },
  errors: ['replica_not_found', 'last_replica'],
  async handle({ params: { name }, query, caller }, collaborators) {
    const { registry, fleet, refresh } = collaborators;
    const replica = registry.find(name);
    if (replica === undefined) return replicaNotFound(name, registry);
    const wasShadow = replica.shadow !== null;
    const { shadowEndCount } = replica;
    if (replica.shadow === null && !replica.drain.drained) {
      const findReason = await askForLastReplica(replica, registry.serving, collaborators.ask);
      // No other call runs between this check and the change, so the second of two such calls sees the first.
      const why = findReason();
      if (why !== null) return new AdminError('last_replica', { message: `Nothing was changed: ${why}.` });
    }
    // It may serve other models than before.
    if (replica.drain.drained) await refresh(replica);
    const share = query.requests ?? collaborators.shadowShare();
    if (!registry.all.includes(replica)) return replicaNotFound(name, registry);
    const isOvertaken = replica.shadowEndCount !== shadowEndCount;
    if (!isOvertaken)
      await collaborators.beginTrial(replica, share, query.for ?? DEFAULT_FOR_MS, caller?.name ?? null);
    const isServedByOthers = fleet !== null && !replica.drain.drained;
    return {
      body: {
        replica: toReplicaJson(replica, fleet),
        was_shadow: wasShadow,
        ...(isOvertaken ? { warning: OVERTAKEN } : isServedByOthers ? { warning: OTHERS_SERVE } : {}),
      },
    };
  },
});

const OVERTAKEN = 'A later drain or unshadow has replaced it.';
const OTHERS_SERVE =
  'Only this gateway treats it as a shadow: the others of the fleet still send it requests of clients. Drain it, or ask each of them.';

/** POST /admin/replicas/{name}/unshadow. */
export const endShadow = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/unshadow',
  params,
  role: 'operator',
  operationId: 'endShadow',
  summary: 'Let a replica be again what its configuration says',
  description:
    'Ends what `shadow` began. A replica that is not drained serves clients again; its share of the turns grows, if ' +
    '`rollout.ramp` says so. What the configuration makes a shadow stays one.',
  response: { description: 'The replica is what its configuration says.', content: json(shadowSchema) },
  errors: ['replica_not_found'],
  async handle({ params: { name }, caller }, { registry, fleet, endTrial }) {
    const replica = registry.find(name);
    if (replica === undefined) return replicaNotFound(name, registry);
    const wasShadow = replica.shadow !== null;
    await endTrial(replica, caller?.name ?? null);
    return { body: { replica: toReplicaJson(replica, fleet), was_shadow: wasShadow } };
  },
});
