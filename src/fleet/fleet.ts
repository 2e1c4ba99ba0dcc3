/*
 * Several gateways as one: they share drains, ramps, limits and stored responses through Redis or Valkey.
 *
 * It never knows requests; only redis/ knows Redis: redis-store.ts there finds what no gateway has written.
 * Begin with joined-fleet.ts; rules/ has what follows from what is known of the others.
 */

export { FleetLog } from './fleet-log.ts';
export { type Fleet, openFleet } from './joined-fleet.ts';
export { createMembershipFile } from './membership-file.ts';
export { RedisChannels } from './redis/redis-channel.ts';
export { pingRedis } from './redis/redis-connection.ts';
export { createRedisStore, toRedisAddress } from './redis/redis-store.ts';
export { ResponseExchange } from './responses/response-exchange.ts';
