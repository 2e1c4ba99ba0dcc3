import { hostname } from 'node:os';
import { type KubernetesSection, type KubernetesSource, toKubernetesSource } from './kubernetes-source.ts';
import type { ApiClientSection } from './schema/clients.ts';
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

/** Converts the keys of an entry. The digests are in lower case. */
export function toApiClient(section: ApiClientSection) {
  const { name, key_sha256, tenant, feature, models, expires } = section;
  return {
    name,
    keyDigests: [key_sha256].flat().map((digest) => digest.toLowerCase()),
    tenant: tenant ?? name,
    feature: feature ?? null,
    models: models ?? null,
    expiresAtMs: expires === undefined ? null : Date.parse(expires),
    limits: toClientLimits(section),
  };
}

type LimitsSection = Pick<ApiClientSection, 'max_inflight' | 'requests_per_minute' | 'tokens_per_minute'>;

/** `jwks`: a URL, or an absolute path. */
function toJwtConfig(section: NonNullable<ConfigFile['jwt']>) {
  const { issuer, audience, jwks, algorithms, tenant_claim, feature_claim, models_claim, client_claim } =
    section;
  return {
    issuer,
    audiences: [audience].flat(),
    ...{ jwks, algorithms },
    tenantClaim: tenant_claim,
    featureClaim: feature_claim ?? null,
    modelsClaim: models_claim ?? null,
    clientClaim: client_claim ?? null,
    /** Of each tenant. */
    limits: toClientLimits(section),
  };
}

/** Null: the client has no limits; a limit that is null: it does not have this one. */
function toClientLimits({ max_inflight, requests_per_minute, tokens_per_minute }: LimitsSection) {
  const limits = {
    maxInflight: max_inflight ?? null,
    requestsPerMinute: requests_per_minute ?? null,
    tokensPerMinute: tokens_per_minute ?? null,
  };
  return Object.values(limits).every((limit) => limit === null) ? null : limits;
}

/** `limits`: null for a tenant without limits. `rest`: those of each tenant that is not among them. */
function toTenantLimits({ default: rest, ...named }: NonNullable<ConfigFile['tenant_limits']>) {
  return {
    named: Object.entries(named).map(([tenant, row]) => ({ tenant, limits: toClientLimits(row) })),
    rest: rest === undefined ? null : toClientLimits(rest),
  };
}

/** The limits of tenants. */
export type TenantLimitsConfig = NonNullable<Config['tenantLimits']>;

/** One client, from `clients` or from the file of clients. */
export type ApiClientConfig = NonNullable<Config['clients']>[number];

/** Null: this gateway shares no state with others. `url` is secret. */
function toFleetConfig({ redis, prefix }: ConfigFile['state']) {
  return redis === undefined ? null : { url: redis, prefix };
}

type ReplicaEntry = Omit<ConfigFile['replicas'][number], 'url' | 'dns' | 'kubernetes'>;

function toReplicaConfig(url: string, entry: ReplicaEntry) {
  return { name: entry.name, url, host: entry.host ?? new URL(url).hostname, ...toCommonSettings(entry) };
}

function toServiceConfig(url: string, entry: ReplicaEntry): ServiceSettings {
  return { name: entry.name, url, host: entry.host ?? null, ...toCommonSettings(entry) };
}

interface ServiceSettings extends CommonSettings {
  name: string;
  url: string;
  host: string | null;
  kubernetes?: KubernetesSource;
}

/** The host of the URL is the name in the certificate of the pods, if they have one. */
function toPodsConfig(section: KubernetesSection, entry: ReplicaEntry): ServiceSettings {
  const { service, namespace, scheme } = section;
  const host = namespace === undefined ? service : `${service}.${namespace}.svc`;
  return { ...toServiceConfig(`${scheme}://${host}`, entry), kubernetes: toKubernetesSource(section) };
}

function toCommonSettings(entry: ReplicaEntry): CommonSettings {
  const { gpu_model, gpu_count, models, engine, max_inflight, api_key, tls } = entry;
  const apiKey = api_key === undefined ? {} : { apiKey: api_key };
  const tlsFiles = tls === undefined ? {} : { tlsFiles: toReplicaTls(tls) };
  const maxInflight = max_inflight;
  return { gpuModel: gpu_model, gpuCount: gpu_count, models, engine, maxInflight, ...apiKey, ...tlsFiles };
}

interface CommonSettings {
  gpuModel: string | null;
  gpuCount: number | null;
  models: ReplicaEntry['models'];
  engine: ReplicaEntry['engine'];
  maxInflight: number | null;
  apiKey?: string;
  tlsFiles?: ReturnType<typeof toReplicaTls>;
}

/** The paths of the files are absolute; null if there is no such file. */
function toReplicaTls({ ca, cert, key, server_name, verify }: NonNullable<ReplicaEntry['tls']>) {
  return { ca: ca ?? null, cert: cert ?? null, key: key ?? null, serverName: server_name ?? null, verify };
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
