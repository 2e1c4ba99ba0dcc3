import { hostname } from 'node:os';
import { toApiClient, toJwtConfig, toTenantLimits } from './client-config.ts';
import { toPodsConfig, toReplicaConfig, toServiceConfig } from './replica-config.ts';
import type { ConfigFile } from './schema.ts';

type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** The configuration in effect: all values present, units in the names, header names in lower case. */
export type Config = DeepReadonly<ReturnType<typeof toConfig>>;

/**
 * One replica, from the configuration or from DNS. `url` is the origin and a path prefix without a trailing slash;
 * `gpuModel` and `gpuCount` are null if not configured; `apiKey` is secret.
 */
export type ReplicaConfig = Config['replicas'][number] & {
  /** The name in its certificate, if that is not the host of `url`. */
  readonly tlsName?: string;
  /** What `tlsFiles` names, read from the files. */
  readonly tls?: ReplicaTls;
  /** The id of its pod: one that has another id is another server, even if it has the same address. */
  readonly serverId?: string;
};

/** How connections to a replica are secured: PEM; null where nothing is configured. `key` is secret. */
export interface ReplicaTls {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly verify: boolean;
}

/**
 * A DNS name, or a Service of Kubernetes, that stands for several replicas, which differ only in `name`, `url`, `host`
 * and `serverId`. The name of each replica begins with `name`, or is that of its pod; `host` is null if each replica has
 * its own. With `kubernetes`, the servers give `url` their address and port.
 */
export type ServiceConfig = Config['services'][number] & Pick<ReplicaConfig, 'tls' | 'tlsName'>;

/** An inference engine whose API the gateway knows. */
export type Engine = Exclude<ReplicaConfig['engine'], 'auto'>;

/** A name in `endpoints` of the configuration. */
export type FurtherEndpoint = Config['endpoints'][number];

/** Converts the keys of the file to those of the gateway, with units. */
export function toConfig(file: ConfigFile) {
  const { gateway, headers, timeouts, limits, shutdown } = file;
  return {
    gateway: {
      name: gateway.name ?? hostname(),
      listen: gateway.listen,
      adminListen: gateway.admin_listen,
      adminHosts: gateway.admin_hosts ?? null,
      /** Null: the key is not set. */
      trustedProxies: gateway.trusted_proxies ?? null,
      workers: gateway.workers,
      tls: gateway.tls === undefined ? null : toListenerTls(gateway.tls),
      adminTls: gateway.admin_tls === undefined ? null : toListenerTls(gateway.admin_tls),
      recordsClientSubject: gateway.tls?.record_subject === true,
    },
    headers: {
      tenant: headers.tenant.toLowerCase(),
      feature: headers.feature.toLowerCase(),
      conversation: headers.conversation.toLowerCase(),
    },
    endpoints: file.endpoints,
    pass: file.pass,
    modelsListing: file.models_listing,
    aliases: file.aliases,
    stateDir: file.state_dir,
    clients: file.clients?.map(toApiClient) ?? null,
    /** Absolute; null: there is none. */
    clientsFile: file.clients_file ?? null,
    jwt: file.jwt === undefined ? null : toJwtConfig(file.jwt),
    tenantLimits: file.tenant_limits === undefined ? null : toTenantLimits(file.tenant_limits),
    fleet: toFleetConfig(file.state),
    replicas: file.replicas.flatMap(({ url, ...rest }) =>
      url === undefined ? [] : toReplicaConfig(url, rest),
    ),
    services: file.replicas.flatMap(({ dns, kubernetes, ...rest }) => {
      if (kubernetes !== undefined) return [toPodsConfig(kubernetes, rest)];
      return dns === undefined ? [] : [toServiceConfig(dns, rest)];
    }),
    routing: { policy: file.routing.policy },
    /** Null: every answer is relayed. */
    retry: file.retry.statuses.length === 0 ? null : file.retry,
    health: toHealthConfig(file.health),
    rollout: { rampMs: file.rollout.ramp },
    discovery: {
      modelsIntervalMs: file.discovery.models_interval,
      dnsIntervalMs: file.discovery.dns_interval,
    },
    export: toExportConfig(file.export),
    metrics: toMetricsConfig(file),
    trace: {
      incoming: file.trace.incoming,
      spans: file.trace.spans,
      urlTemplate: file.trace.url_template,
    },
    prefixHash: { blockChars: file.prefix_hash.block_chars, maxBlocks: file.prefix_hash.max_blocks },
    timeouts: {
      connectMs: timeouts.connect,
      firstByteMs: timeouts.first_byte,
      idleMs: timeouts.idle,
      queueMs: timeouts.queue,
      clientHeadersMs: timeouts.client_headers,
      clientBodyMs: timeouts.client_body,
      keepAliveMs: timeouts.keep_alive,
      upstreamKeepAliveMs: timeouts.upstream_keep_alive,
    },
    limits: {
      bodyBytes: limits.body,
      bufferedBytes: limits.buffered,
      beforeModelBytes: limits.before_model,
      headersBytes: limits.headers,
      eventBytes: limits.event,
      queue: limits.queue,
      backgroundMs: limits.background,
      connections: limits.connections,
    },
    shutdown: { delayMs: shutdown.delay, graceMs: shutdown.grace, flushMs: shutdown.flush },
    log: file.log,
  };
}

/** The paths of the files are absolute. `clientCa`: null if clients need no certificate. */
function toListenerTls({ cert, key, pairs, client_ca, min_version }: ListenerTlsSection) {
  return { pairs: [{ cert, key }, ...pairs], clientCa: client_ca ?? null, minVersion: min_version };
}

type ListenerTlsSection = NonNullable<ConfigFile['gateway']['admin_tls']>;

/** The limits of tenants. */
export type TenantLimitsConfig = NonNullable<Config['tenantLimits']>;

/** One client, from `clients` or from the file of clients. */
export type ApiClientConfig = NonNullable<Config['clients']>[number];

/** Null: this gateway shares no state with others. `url` is secret. */
function toFleetConfig({ redis, prefix }: ConfigFile['state']) {
  return redis === undefined ? null : { url: redis, prefix };
}

function toHealthConfig(file: ConfigFile['health']) {
  const { cool_down, frozen_after, interval, timeout, peers, ...rest } = file;
  return {
    ...rest,
    frozenAfterMs: frozen_after ?? null,
    coolDownMs: cool_down,
    intervalMs: interval,
    timeoutMs: timeout,
    peers: peers === undefined ? null : toPeersConfig(peers),
  };
}

function toPeersConfig({
  tolerance,
  max_failing,
  cool_down,
  ramp,
}: NonNullable<ConfigFile['health']['peers']>) {
  return { tolerance, maxFailingShare: max_failing, coolDownMs: cool_down, rampMs: ramp };
}

function toMetricsConfig({ metrics, export: { to } }: ConfigFile) {
  const { otlp = to === 'otlp', interval, max_names } = metrics;
  return { otlp, ...(interval === undefined ? {} : { intervalMs: interval }), maxNames: max_names };
}

function toExportConfig(file: ConfigFile['export']) {
  const { to, endpoint, protocol, file: files, queue_size, queue_bytes, batch_size, interval, retry } = file;
  const { ledger } = file;
  return {
    to,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(protocol === undefined ? {} : { protocol }),
    file: { maxBytes: files.max_size, maxAgeMs: files.max_age, maxTotalBytes: files.max_total },
    queueSize: queue_size,
    queueBytes: queue_bytes,
    batchSize: batch_size,
    intervalMs: interval,
    retry: { initialMs: retry.initial, maxMs: retry.max },
    ledger: ledger === undefined ? null : { intervalMs: ledger.interval },
  };
}
