import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { openRedisChannel } from '../fleet/responses/redis-channel.ts';
import { ResponseExchange } from '../fleet/responses/response-exchange.ts';
import { StoredResponses } from '../replicas/shared/stored-responses.ts';
import type { ServingMemory } from '../serving/serving.ts';

/** Composes what tells the other gateways of a fleet which replica has which response. Null: there is no fleet. */
export function composeResponseExchange(
  { fleet }: Config,
  { storedResponses }: ServingMemory,
  log: Logger,
): ResponseExchange | null {
  if (fleet === null) return null;
  return new ResponseExchange({
    storedResponses: new StoredResponses(storedResponses),
    openChannel: (listener) => openRedisChannel(fleet, listener),
    log,
  });
}
