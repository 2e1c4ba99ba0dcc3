import { availableParallelism, hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '#config';
import type { TelemetrySettings } from '#otel';
import type { MetricsSettings } from '#otel/metrics';
import type { RecorderSettings } from '#otel/span';
import { endpointsByPath, type ProxyPolicy } from '#proxy';
import { createTrustedProxies, PassedPaths } from '#proxy/entry';
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

type ProxySettings = ProxyPolicy['settings'];

/** Who may send requests, and what tenants may use. */
type Access = Pick<ProxySettings, 'apiClients' | 'tenantLimits'>;

/** The settings of the proxy. `viaName`: the gateway's name in Via. */
export function toProxyPolicy(config: Config, access: Access, viaName: string): ProxyPolicy {
  const { apiClients } = access;
  const { trustedProxies } = config.gateway;
  const isContinuing = config.trace.incoming === 'continue';
  const settings = toProxySettings(config, access, viaName, {
    trustsTenant: apiClients === null,
    continuesTraces: isContinuing && trustedProxies === null,
    tellsRoute: false,
  });
  const tellsRoute = config.routing.tell === 'trusted';
  const isSame = apiClients === null && !isContinuing && !tellsRoute;
  if (trustedProxies === null || isSame) return { settings, trusted: null };
  return {
    settings,
    trusted: {
      proxies: createTrustedProxies(trustedProxies),
      settings: toProxySettings(config, access, viaName, {
        trustsTenant: true,
        continuesTraces: isContinuing,
        tellsRoute,
      }),
    },
  };
}

function toProxySettings(
  { aliases, currency, endpoints, gateway, headers, limits, log, modelsListing, pass, ...config }: Config,
  { apiClients, tenantLimits }: Access,
  viaName: string,
  {
    trustsTenant,
    continuesTraces,
    tellsRoute,
  }: Pick<ProxySettings, 'continuesTraces' | 'tellsRoute'> & { readonly trustsTenant: boolean },
): ProxySettings {
  const { history, prefixHash, progressiveUsage, retry, timeouts } = config;
  const keyFields = ['authorization', 'x-api-key'];
  const tenant = headers.tenant.toLowerCase();
  return {
    viaName,
    endpoints: endpointsByPath(endpoints),
    recordedFields: {
      tenant,
      feature: headers.feature.toLowerCase(),
      conversation: headers.conversation.toLowerCase(),
      names: toNameHeaders(headers),
      trustsTenant,
      needsClient: apiClients !== null,
      clientSubject: gateway.tls?.recordSubject === true,
      currency,
    },
    continuesTraces,
    tellsRoute,
    apiClients,
    tenantLimits,
    withheldFields: apiClients === null ? null : new Set(trustsTenant ? keyFields : [...keyFields, tenant]),
    passes: new PassedPaths(pass),
    aliases: Object.keys(aliases).length === 0 ? null : new Map(Object.entries(aliases)),
    listsAllModels: modelsListing === 'union',
    tellsUsage: history?.clientUsage === true && apiClients !== null,
    retry:
      retry.statuses.length === 0 ? null : { statuses: new Set(retry.statuses), attempts: retry.attempts },
    isDebug: log.level === 'debug',
    maxBodyBytes: limits.bodyBytes,
    maxBeforeModelBytes: limits.beforeModelBytes,
    maxEventBytes: limits.eventBytes,
    prefixBlockChars: prefixHash.blockChars,
    asksRunningUsage: progressiveUsage,
    clientBodyMs: timeouts.clientBodyMs,
    firstByteMs: timeouts.firstByteMs,
    idleMs: timeouts.idleMs,
    silentMs: timeouts.silentMs ?? timeouts.idleMs,
    queueMs: timeouts.queueMs,
  };
}

/** The headers that name who and what a request is for, in lower case; null: none does. */
function toNameHeaders({ user, session, agent, prompt, promptVersion }: Config['headers']) {
  const headers = { user, session, agent, prompt, promptVersion };
  const named = Object.entries(headers).filter(
    (entry): entry is [keyof typeof headers, string] => entry[1] !== null,
  );
  return named.length === 0 ? null : named.map(([name, header]) => ({ name, header: header.toLowerCase() }));
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
