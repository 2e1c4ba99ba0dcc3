import { availableParallelism, hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '#config';
import type { TelemetrySettings } from '#otel';
import type { MetricsSettings } from '#otel/metrics';
import type { RecorderSettings } from '#otel/span';
import type { PoolSettings } from '#replicas';
import type { ShadowSettings } from '#shadow';
import type { ClientConnectionSettings } from '#wire/client';

/** The name of this gateway among those that share state. */
export function toGatewayName({ gateway }: Config): string {
  return gateway.name ?? hostname();
}

/** How many workers serve clients. A single worker is the main thread. */
export function toWorkerCount({ gateway }: Pick<Config, 'gateway'>): number {
  return gateway.workers === 'auto' ? availableParallelism() : gateway.workers;
}

/** The settings of the pool of replicas. */
export function toPoolSettings({ routing, limits, health, timeouts, discovery }: Config): PoolSettings {
  const { connectMs, upstreamKeepAliveMs } = timeouts;
  return {
    policy: routing.policy,
    queueCapacity: limits.queue,
    health,
    timeouts: { connectMs, upstreamKeepAliveMs, nameTtlMs: discovery.dnsIntervalMs },
  };
}

/** What is copied to shadows. */
export function toShadowSettings({ shadow, timeouts }: Config): ShadowSettings {
  const { firstByteMs, idleMs, silentMs } = timeouts;
  return {
    share: shadow.requestsShare,
    maxInflight: shadow.maxInflight,
    cutsWithClient: shadow.cutWithClient,
    timeouts: { firstByteMs, idleMs, silentMs: silentMs ?? idleMs },
  };
}

/** The settings of client connections. */
export function toClientConnectionSettings({ limits, timeouts }: Config): ClientConnectionSettings {
  return {
    maxHeadBytes: limits.headersBytes,
    headTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
    sendTimeoutMs: timeouts.idleMs,
    maxDiscardedBytes: limits.bodyBytes,
  };
}

/** The settings of the admin listener. */
export function toAdminListenerSettings({ limits, timeouts }: Config) {
  return {
    maxHeaderBytes: limits.headersBytes,
    headersTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
  };
}

/** The settings of the recorder in each thread that serves requests. */
export function toRecorderSettings({ trace }: Config): RecorderSettings {
  return { incoming: trace.incoming, spans: trace.spans, dialects: trace.dialects };
}

/** The settings of the metrics. */
export function toMetricsSettings({
  gateway,
  metrics,
  export: { to, endpoint, protocol },
}: Config): MetricsSettings {
  const { otlp, intervalMs, maxNames } = metrics;
  return {
    maxNames,
    urlScheme: gateway.tls === null ? 'http' : 'https',
    push: (otlp ?? to === 'otlp') ? { endpoint, protocol, intervalMs } : undefined,
  };
}

/** The settings of the telemetry. */
export function toTelemetrySettings(config: Omit<Config, 'replicas'>): TelemetrySettings {
  const { export: to, stateDir } = config;
  const { maxSizeBytes, ...files } = to.file;
  const workerCount = toWorkerCount(config);
  return {
    exporter:
      to.to === 'file'
        ? { to: 'file', files: { directory: stateDir, maxBytes: maxSizeBytes, ...files } }
        : { to: 'otlp', endpoint: to.endpoint, protocol: to.protocol },
    spoolDirectory: join(stateDir, 'spool'),
    instanceFile: join(stateDir, 'instance-id'),
    queue: { capacity: to.queueSize, capacityBytes: to.queueBytes },
    workerCount: workerCount === 1 ? 0 : workerCount,
    batchSize: to.batchSize,
    intervalMs: to.intervalMs,
    retry: to.retry,
    ledgerIntervalMs: to.ledger?.intervalMs ?? null,
  };
}
