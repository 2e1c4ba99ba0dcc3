import { z } from 'zod';
import type { AdminCollaborators, FleetGateway } from '../admin-collaborators.ts';
import { AdminError } from '../admin-error.ts';
import { defineRoute, json } from '../route.ts';
import { gatewayNotFound } from '../unknown-name.ts';

const gatewaySchema = z
  .object({
    name: z.string().describe('Two gateways may have the same name.'),
    id: z.string().nullable().describe('The id of its process. Null without a fleet.'),
    self: z.boolean().describe('Whether it is the gateway that responds.'),
    alive: z.boolean().nullable().describe('Whether its heartbeat is valid. Null: the shared state is away.'),
    inflight: z.int().min(0).nullable().describe('Its requests in flight; null if it is not alive.'),
  })
  .meta({ id: 'Gateway' });

const listSchema = z.object({
  gateways: z.array(gatewaySchema),
  instance_id: z
    .string()
    .describe(
      'Which gateway responds: the id in its `state_dir`, the same after a restart. `service.instance.id` of its records, ' +
        'if the variables of OpenTelemetry set no other.',
    ),
});

/** GET /admin/gateways. */
export const listGateways = defineRoute({
  method: 'GET',
  path: '/admin/gateways',
  operationId: 'listGateways',
  summary:
    'All gateways that a drain waits for: this one, those that are alive, and those that have vanished',
  description: 'Without `state.redis`, the list contains only this gateway.',
  response: {
    description: 'The gateways, by name.',
    content: json(listSchema),
  },
  handle: (_call, collaborators) => ({ body: toList(collaborators) }),
});

/** POST /admin/gateways/{name}/forget. */
export const forgetGateway = defineRoute({
  method: 'POST',
  path: '/admin/gateways/{name}/forget',
  params: { name: "The gateway's name." },
  operationId: 'forgetGateway',
  summary: 'Stop waiting for a gateway that has vanished',
  description:
    'Tells the whole fleet that the gateway has stopped, so that `safe_to_stop` no longer waits for it. A gateway that ' +
    'was only cut off may still be sending requests: make sure that its process has ended.',
  response: {
    description: 'The remaining gateways, by name.',
    content: json(listSchema),
  },
  errors: ['gateway_not_found', 'gateway_alive', 'fleet_unreachable'],
  handle({ params: { name }, caller }, collaborators) {
    const error = forget(name, collaborators);
    if (error === 'gateway_not_found') return gatewayNotFound(name, gatewaysOf(collaborators));
    if (error !== null) return new AdminError(error);
    collaborators.log.info({ action: 'forget', gateway: name, token_name: caller?.name ?? null }, 'forget');
    return { body: toList(collaborators) };
  },
});

function toList(collaborators: AdminCollaborators): z.output<typeof listSchema> {
  return {
    gateways: gatewaysOf(collaborators).map((each) => {
      const { name, id, isSelf, isAlive, inflight } = each;
      return { name, id, self: isSelf, alive: isAlive, inflight };
    }),
    instance_id: collaborators.instanceId,
  };
}

function gatewaysOf({ fleet, gatewayName, registry }: AdminCollaborators): readonly FleetGateway[] {
  if (fleet !== null) return fleet.gateways();
  const inflight = registry.serving.reduce((sum, replica) => sum + replica.inflight, 0);
  return [{ name: gatewayName, id: null, isSelf: true, isAlive: true, inflight }];
}

function forget(name: string, { fleet, gatewayName }: AdminCollaborators) {
  if (fleet !== null) return fleet.forget(name);
  return name === gatewayName ? 'gateway_alive' : 'gateway_not_found';
}
