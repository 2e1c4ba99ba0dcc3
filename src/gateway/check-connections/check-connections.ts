import { JwksError, readJwks, toShownSource } from '#access/jwt';
import type { Config, SecuredReplica } from '#config';
import { openExporter } from '#otel';
import { adviseOnCollector, CollectorHeaders, type HeaderTexts, toShownAddress } from '#otel/collector';
import type { ExportOutcome } from '#otel/export';
import { encodeResourceSpans } from '#otel/otlp';
import { createResource } from '#otel/resource';
import { checkReplicas } from '#replicas/discovery';
import { toTelemetrySettings } from '../serving/settings.ts';
import { type ConnectionCheck, explain, runCheck } from './connection-check.ts';

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

/** Reads the keys of tokens, as the gateway does. `source`: a URL, or a path that `checkSettings` has read. */
function checkJwks(source: string): Promise<ConnectionCheck> {
  const target = toShownSource(source);
  return runCheck('jwks', 'jwt.jwks', async () => {
    try {
      const { keys } = await readJwks(source);
      const result = `ok, ${keys.length} ${keys.length === 1 ? 'key' : 'keys'}`;
      return { target, isOk: true, result, advice: null };
    } catch (error) {
      if (!(error instanceof JwksError)) throw error;
      const other =
        'it must answer with a JSON Web Key Set: see jwks_uri in /.well-known/openid-configuration of the issuer';
      return { target, isOk: false, ...explain(error.message, [[/^/, error.message, other]]) };
    }
  });
}

/** Sends PING to the Redis server of a fleet. `url` is secret. */
function checkRedis(url: string): Promise<ConnectionCheck> {
  return runCheck('redis', 'state.redis', async () => {
    const { pingRedis, toRedisAddress } = await import('#fleet');
    const target = toRedisAddress(url);
    const code = await pingRedis(url);
    if (code === null) return { target, isOk: true, result: 'ok', advice: null };
    return { target, isOk: false, ...explain(code, FINDINGS) };
  });
}

/** What the codes of Node and the error words of Redis mean, and what to do. */
const FINDINGS: Parameters<typeof explain>[1] = [
  [/^timeout$/, 'no answer in time', 'check address and network, and whether it wants rediss:// (TLS)'],
  [/^(?:NOAUTH|WRONGPASS)$/, 'wrong password', 'write it into the URL: redis://user:password@host'],
  [/^(?:EPROTO|ERR_SSL_\w+)$/, 'TLS failed', 'the server does not speak TLS at this port: try redis://'],
  [/^(?:ECONNRESET|EPIPE|closed)$/, 'connection reset', 'check the port; it may want rediss:// (TLS)'],
];

const EXPORT_TIMEOUT_MS = 5_000;

/** Warnings about variables were given by `checkSettings`. */
const SILENT = { info() {}, warn() {}, error() {} };

/**
 * Sends the collector an export without records, with these headers beside those of the variables. Null if records go
 * to files.
 */
async function checkCollector(
  config: Omit<Config, 'replicas'>,
  headers: HeaderTexts,
): Promise<ConnectionCheck | null> {
  const { exporter: settings } = toTelemetrySettings(config);
  if (settings.to === 'file') return null;
  const exporter = await openExporter(settings, encodeResourceSpans(createResource({})), {
    log: SILENT,
    collectorHeaders: new CollectorHeaders(headers),
  });
  const url = exporter.collector?.url ?? new URL('http://localhost');
  const name = config.export.endpoint === null ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'export.endpoint';
  return await runCheck('collector', name, async () => {
    try {
      const reason = toReason(await exporter.exportBatch([], AbortSignal.timeout(EXPORT_TIMEOUT_MS)));
      const target = toShownAddress(url);
      if (reason === null) return { target, isOk: true, result: 'ok', advice: null };
      const advice = adviseOnCollector(reason, url) ?? null;
      return { target, isOk: false, result: reason.replace(/^http_/, 'status '), advice };
    } finally {
      exporter.close();
    }
  });
}

/** Null if the collector took it. */
function toReason(outcome: ExportOutcome): string | null {
  switch (outcome.kind) {
    case 'taken':
      return null;
    case 'answered':
      return `http_${outcome.status}`;
    case 'oversized':
      return 'an answer that is too large';
    case 'unanswered':
      return outcome.code === 'aborted' || outcome.code === 'timeout' ? 'no answer in time' : outcome.code;
  }
}
