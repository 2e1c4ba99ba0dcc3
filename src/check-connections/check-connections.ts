import type { HeaderTexts } from '#otel/export/collector-headers.ts';
import type { TelemetryLog } from '#otel/telemetry-log.ts';
import type { Config } from '../config/config.ts';
import { createResolver } from '../replicas/control/discovery/resolver.ts';
import { checkCollector } from './check-collector.ts';
import { checkJwks } from './check-jwks.ts';
import { checkRedis } from './check-redis.ts';
import { checkReplicas } from './check-replicas.ts';
import type { ConnectionCheck } from './connection-check.ts';

/**
 * Tries every server that the configuration names, all at once: GET /v1/models to each replica, an empty export to the
 * collector, PING to Redis, a reading of the keys of JWTs. Each try ends within a few seconds. Returns the results in
 * the order of the file, and rejects only if telemetry cannot start with these settings. `log` gets warnings about
 * OTEL_* variables.
 */
export async function checkConnections(
  config: Config,
  collectorHeaders: HeaderTexts,
  log: TelemetryLog,
): Promise<readonly ConnectionCheck[]> {
  const [replicas, collector, redis, jwks] = await Promise.all([
    checkReplicas(config, createResolver()),
    checkCollector(config, collectorHeaders, log),
    config.fleet === null ? null : checkRedis(config.fleet.url),
    config.jwt === null ? null : checkJwks(config.jwt.jwks),
  ]);
  return [...replicas, collector, redis, jwks].filter((check) => check !== null);
}
