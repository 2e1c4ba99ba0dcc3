import { z } from 'zod';
import type { AdminServices } from '../admin-services.ts';
import { json } from '../content.ts';
import type { FleetGateway } from '../fleet-control.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';

const gatewaySchema = z
  .object({
    name: z.string().describe('Two gateways may have one name.'),
    id: z.string().nullable().describe('That of its process. Null if gateways share nothing here.'),
    self: z.boolean().describe('Whether it is the one that answers.'),
    alive: z.boolean().describe('Whether it has been heard within the last seconds.'),
    inflight: z.int().min(0).nullable().describe('Its requests in flight; null if it is not alive.'),
  })
  .meta({ id: 'Gateway' });

/** GET /admin/gateways. */
export const listGateways = defineRoute({
  method: 'GET',
  path: '/admin/gateways',
  operationId: 'listGateways',
  summary: 'Every gateway that a drain waits for: itself, those it hears, and those that vanished',
  description: 'Without `state.redis` that is this gateway alone.',
  answer: {
    description: 'The gateways, by name.',
    content: json(z.object({ gateways: z.array(gatewaySchema) })),
  },
  handle: (_call, services) => ({ body: { gateways: gatewaysOf(services).map(toGatewayView) } }),
});

/** POST /admin/gateways/{name}/forget. */
export const forgetGateway = defineRoute({
  method: 'POST',
  path: '/admin/gateways/{name}/forget',
  params: { name: "The gateway's name." },
  operationId: 'forgetGateway',
  summary: 'No longer wait for a gateway that vanished',
  description:
    'Says to the whole fleet that the gateway has stopped: `safe_to_stop` does not wait for it any more. One that ' +
    'still runs, and was only cut off, may be sending requests: make sure that it does not.',
  answer: {
    description: 'It is not waited for.',
    content: json(z.object({ gateways: z.array(gatewaySchema) })),
  },
  refusals: ['gateway_not_found', 'gateway_alive', 'fleet_unreachable'],
  handle({ params: { name } }, services) {
    const refusal = forget(name, services);
    if (refusal !== null) return new Refusal(refusal);
    services.log.info({ action: 'forget', gateway: name }, 'forget');
    return { body: { gateways: gatewaysOf(services).map(toGatewayView) } };
  },
});

function gatewaysOf({ fleet, gatewayName, registry }: AdminServices): readonly FleetGateway[] {
  if (fleet !== null) return fleet.gateways();
  const inflight = registry.replicas.reduce((sum, replica) => sum + replica.inflight, 0);
  return [{ name: gatewayName, id: null, isSelf: true, isAlive: true, inflight }];
}

function forget(name: string, { fleet, gatewayName }: AdminServices) {
  if (fleet !== null) return fleet.forget(name);
  return name === gatewayName ? 'gateway_alive' : 'gateway_not_found';
}

function toGatewayView({
  name,
  id,
  isSelf,
  isAlive,
  inflight,
}: FleetGateway): z.output<typeof gatewaySchema> {
  return { name, id, self: isSelf, alive: isAlive, inflight };
}
