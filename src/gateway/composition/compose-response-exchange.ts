import type { Logger } from 'pino';
import { openRedisChannel, ResponseExchange } from '#fleet';
import { StoredResponses } from '#replicas/shared';
import type { ServingMemory } from '../serving/serving-memory.ts';
import type { ConfigInEffect } from './config-in-effect.ts';

/** Composes what tells the other gateways of a fleet which replica has which response. Null: there is no fleet. */
export function composeResponseExchange(
  inEffect: ConfigInEffect,
  { storedResponses }: ServingMemory,
  log: Logger,
): ResponseExchange | null {
  const { fleet } = inEffect.config;
  if (fleet === null) return null;
  return new ResponseExchange({
    storedResponses: new StoredResponses(storedResponses),
    openChannel: (listener) =>
      openRedisChannel({ prefix: fleet.prefix, url: () => inEffect.config.fleet?.url ?? '' }, listener),
    log,
  });
}
