import { join } from 'node:path';
import type { TelemetrySettings } from '#otel/start-telemetry.ts';
import type { Config } from './config/config.ts';
import type { ListenerSettings } from './http/listener.ts';
import type { ProxySettings } from './proxy/proxy-context.ts';

/** What the proxy is told. */
export function toProxySettings({ headers, limits, timeouts }: Config): ProxySettings {
  return {
    recordedHeaders: headers,
    maxBodyBytes: limits.bodyBytes,
    maxEventBytes: limits.eventBytes,
    clientBodyMs: timeouts.clientBodyMs,
    firstByteMs: timeouts.firstByteMs,
    idleMs: timeouts.idleMs,
  };
}

/** What both listeners are told. */
export function toListenerSettings({ limits, timeouts }: Config): ListenerSettings {
  return {
    maxHeaderBytes: limits.headersBytes,
    maxConnections: limits.connections,
    headersTimeoutMs: timeouts.clientHeadersMs,
    keepAliveMs: timeouts.keepAliveMs,
  };
}

/** What telemetry is told. */
export function toTelemetrySettings({ export: to, trace, stateDir }: Config): TelemetrySettings {
  return {
    sink:
      to.to === 'file'
        ? { to: 'file', files: { directory: stateDir, ...to.file } }
        : { to: 'otlp', endpoint: to.endpoint },
    spoolDirectory: join(stateDir, 'spool'),
    queue: { capacity: to.queueSize, capacityBytes: to.queueBytes },
    batchSize: to.batchSize,
    intervalMs: to.intervalMs,
    retry: to.retry,
    incoming: trace.incoming,
    attemptSpans: trace.attemptSpans,
  };
}
