import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { MetricsSettings } from '#otel/metrics/start-metrics.ts';
import type { RecorderSettings } from '#otel/span/start-recorder.ts';
import type { TelemetrySettings } from '#otel/start-telemetry.ts';
import type { Config } from '../config/config.ts';
import type { ClientConnectionSettings } from '../http/client-connection-context.ts';
import type { ProxySettings } from '../proxy/proxy-context.ts';
import type { ConnectionTimeouts } from '../replicas/data/connections.ts';

/** How many workers serve clients; with one, that is the main thread. */
export function toWorkerCount({ gateway }: Config): number {
  return gateway.workers === 'auto' ? availableParallelism() : gateway.workers;
}

/** What the proxy is told. */
export function toProxySettings({ headers, limits, timeouts }: Config): ProxySettings {
  return {
    recordedHeaders: headers,
    maxBodyBytes: limits.bodyBytes,
    maxEventBytes: limits.eventBytes,
    clientBodyMs: timeouts.clientBodyMs,
    firstByteMs: timeouts.firstByteMs,
    idleMs: timeouts.idleMs,
    queueMs: timeouts.queueMs,
  };
}

/** What connections to replicas are told. */
export function toConnectionTimeouts({ timeouts, discovery }: Config): ConnectionTimeouts {
  const { connectMs, upstreamKeepAliveMs } = timeouts;
  return { connectMs, upstreamKeepAliveMs, nameTtlMs: discovery.dnsIntervalMs };
}

/** What the connections of clients are told. */
export function toClientConnectionSettings({ limits, timeouts }: Config): ClientConnectionSettings {
  return {
    maxHeadBytes: limits.headersBytes,
    headTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
    sendTimeoutMs: timeouts.idleMs,
    maxDiscardedBytes: limits.bodyBytes,
  };
}

/** What the admin listener is told. */
export function toAdminListenerSettings({ limits, timeouts }: Config) {
  return {
    maxHeaderBytes: limits.headersBytes,
    headersTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
  };
}

/** What the recorder of each thread that serves requests is told. */
export function toRecorderSettings({ trace }: Config): RecorderSettings {
  return { incoming: trace.incoming, attemptSpans: trace.attemptSpans };
}

/** What the counting of records is told. */
export function toMetricsSettings({ metrics, export: { endpoint } }: Config): MetricsSettings {
  const { otlp, intervalMs, maxNames } = metrics;
  return { maxNames, urlScheme: 'http', push: otlp ? { endpoint, intervalMs } : undefined };
}

/** What telemetry is told. */
export function toTelemetrySettings(config: Config): TelemetrySettings {
  const { export: to, stateDir } = config;
  const workerCount = toWorkerCount(config);
  return {
    sink:
      to.to === 'file'
        ? { to: 'file', files: { directory: stateDir, ...to.file } }
        : { to: 'otlp', endpoint: to.endpoint },
    spoolDirectory: join(stateDir, 'spool'),
    queue: { capacity: to.queueSize, capacityBytes: to.queueBytes },
    workerCount: workerCount === 1 ? 0 : workerCount,
    batchSize: to.batchSize,
    intervalMs: to.intervalMs,
    retry: to.retry,
  };
}
