import { openRedisChannel, ResponseExchange } from '#fleet';
import { StoredResponses } from '#replicas/shared';
import type { Composition } from './gateway-collaborators.ts';

/** Composes what tells the other gateways of a fleet which replica has which response, if there is a fleet. */
export function composeResponseExchange({
  inEffect,
  collaborators: { log },
  parts,
  memory,
}: Composition): void {
  const { fleet } = inEffect.config;
  if (fleet === null) return;
  const exchange = new ResponseExchange({
    storedResponses: new StoredResponses(memory.storedResponses),
    openChannel: (listener) =>
      openRedisChannel({ prefix: fleet.prefix, url: () => inEffect.config.fleet?.url ?? '' }, listener),
    log,
  });
  parts.add('watches', {
    start: () => exchange.configure(inEffect.config.endpoints.includes('responses')),
    stop: () => exchange.configure(false),
  });
  inEffect.onValues(({ endpoints }) => exchange.configure(endpoints.includes('responses')));
}
