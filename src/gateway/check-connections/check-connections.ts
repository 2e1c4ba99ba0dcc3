import type { Config, SecuredReplica } from '#config';
import type { HeaderTexts } from '#otel/collector';
import { checkReplicas } from '#replicas/discovery';
import { checkCollector } from './check-collector.ts';
import { checkJwks } from './check-jwks.ts';
import { checkRedis } from './check-redis.ts';
import type { ConnectionCheck } from './connection-check.ts';

/** A configuration with the contents of the certificate files of its replicas. */
export type SecuredConfig = Omit<Config, 'replicas'> & { readonly replicas: readonly SecuredReplica[] };

/**
 * Tries every server that the configuration names, all at once: GET /v1/models to each replica, an empty export to the
 * collector, PING to Redis, a reading of the keys of JWTs. Each try ends within a few seconds. Returns the results in
 * the order of the file. What `checkSettings` accepts is expected here.
 */
export async function checkConnections(
  config: SecuredConfig,
  collectorHeaders: HeaderTexts,
): Promise<readonly ConnectionCheck[]> {
  const [replicas, collector, redis, jwks] = await Promise.all([
    checkReplicas(config),
    checkCollector(config, collectorHeaders),
    config.state.redis === null ? null : checkRedis(config.state.redis),
    config.jwt === null ? null : checkJwks(config.jwt.jwks),
  ]);
  const ofReplicas = replicas.map((check) => ({ ...check, kind: 'replica' as const }));
  return [...ofReplicas, collector, redis, jwks].filter((check) => check !== null);
}
