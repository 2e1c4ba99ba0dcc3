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
  const { prefix, redis } = inEffect.config.state;
  if (redis === null) return;
  const exchange = new ResponseExchange({
    storedResponses: new StoredResponses(memory.storedResponses),
    openChannel: (listener) =>
      openRedisChannel({ prefix, url: () => inEffect.config.state.redis ?? '' }, listener),
    log,
  });
  parts.add('watches', {
    start: () => exchange.configure(inEffect.config.endpoints.includes('responses')),
    stop: () => exchange.configure(false),
  });
  inEffect.onValues(({ endpoints }) => exchange.configure(endpoints.includes('responses')));
}
