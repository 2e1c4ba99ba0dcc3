import { StoredResponses } from '#replicas/stored-responses';
import type { Composition } from './gateway-collaborators.ts';

/** Composes what tells the other gateways of a fleet which replica has which response, if there is a fleet. */
export async function composeResponseExchange({
  inEffect,
  collaborators: { log },
  parts,
  memory,
  loadChannels,
}: Composition): Promise<void> {
  const channels = await loadChannels();
  if (channels === null) return;
  const { ResponseExchange } = await import('#fleet');
  const exchange = new ResponseExchange({
    storedResponses: new StoredResponses(memory.storedResponses),
    openChannel: (listener) => channels.open('responses', listener),
    log,
  });
  parts.add('watches', {
    start: () => exchange.configure(inEffect.config.endpoints.includes('responses')),
    stop: () => exchange.configure(false),
  });
  inEffect.onValues(({ endpoints }) => exchange.configure(endpoints.includes('responses')));
}
