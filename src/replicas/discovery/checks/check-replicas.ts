import type { Config, SecuredReplica } from '#config';
import { createProbeConnections, pathPrefixOf } from '#replicas';
import { toHealthPath } from '#replicas/health';
import { isHealthy, type ProbeResult, parseModelList, probe, toListFinding } from '#replicas/probes';
import type { ReplicaConfig } from '#replicas/terms';
import { expandService, hasSrvRecords } from '../expand-service.ts';
import { type ApiFailureCode, toApiError } from '../kubernetes/api-call.ts';
import { toReadyEndpoints } from '../kubernetes/ready-endpoints.ts';
import { createSliceApi } from '../kubernetes/slice-api.ts';
import { adviseOnReplica } from '../reachability-log.ts';
import { createResolver, type Endpoint, type Resolver } from '../resolver.ts';
import { type KubernetesSource, type ServiceConfig, splitServers } from '../servers.ts';

/** What one try to reach a server of the configuration has shown. It contains no credentials. */
export interface ReplicaCheck {
  readonly name: string;
  /** Its address. */
  readonly target: string;
  readonly isOk: boolean;
  /** What was found: `ok`, a code of why it does not answer, or a few words. */
  readonly result: string;
  /** What to change; null if nothing is known to be wrong. */
  readonly advice: string | null;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** Of a replica that lists its models: its engine and the models; otherwise null. */
  readonly found: { readonly engine: string; readonly models: readonly string[] } | null;
}

/** Where it is, what came of it, and what follows. */
type Finding = Omit<ReplicaCheck, 'name' | 'durationMs' | 'found'> & Partial<Pick<ReplicaCheck, 'found'>>;

/** For connecting, the TLS handshake and the answer together. */
const PROBE_TIMEOUT_MS = 5_000;
const LOOKUP_TIMEOUT_MS = 5_000;
const MAX_LIST_BYTES = 1024 ** 2;
const MAX_HEALTH_BYTES = 1024;

/** What of a configuration is checked, with the contents of its certificate files. */
export type CheckedConfig = Pick<Config, 'timeouts' | 'health'> & {
  readonly replicas: readonly SecuredReplica[];
};

interface CheckSettings {
  readonly connectMs: number;
  readonly healthPath: string;
}

/**
 * Sends GET /v1/models to every replica of the configuration, all at once, also to those that DNS or Kubernetes tells
 * of. Each try ends within a few seconds. Never rejects.
 */
export async function checkReplicas({
  replicas: entries,
  timeouts,
  health,
}: CheckedConfig): Promise<readonly ReplicaCheck[]> {
  const resolver = createResolver();
  const settings = { connectMs: timeouts.connectMs, healthPath: toHealthPath(health) };
  const { replicas, services } = splitServers(entries);
  const checks = await Promise.all([
    ...replicas.map(async (replica) => [await checkReplica(replica, settings)]),
    ...services.map((service) => checkService(service, resolver, settings)),
  ]);
  return checks.flat();
}

/** Checks each replica that a DNS name, or a Service of Kubernetes, stands for. */
async function checkService(
  service: ServiceConfig,
  resolver: Resolver,
  settings: CheckSettings,
): Promise<readonly ReplicaCheck[]> {
  const startedMs = performance.now();
  const listed = service.kubernetes === null ? null : await listPods(service.kubernetes);
  const endpoints = listed?.endpoints ?? (await lookUp(service, resolver));
  const replicas = expandService(service, endpoints);
  if (replicas.length > 0) {
    return await Promise.all(replicas.map((replica) => checkReplica(replica, settings)));
  }
  if (listed !== null) {
    const { target, result, advice } = listed;
    const durationMs = performance.now() - startedMs;
    return [{ name: service.name, target, isOk: false, found: null, result, advice, durationMs }];
  }
  const records = hasSrvRecords(service) ? 'SRV records' : 'addresses';
  return [
    {
      name: service.name,
      target: service.url,
      isOk: false,
      found: null,
      result: 'name_not_resolved',
      advice: `the name has no ${records}: correct dns, or look at the name server`,
      durationMs: performance.now() - startedMs,
    },
  ];
}

/** No endpoints if the name cannot be resolved in time. */
async function lookUp({ url, ...rest }: ServiceConfig, resolver: Resolver): Promise<readonly Endpoint[]> {
  const { hostname } = new URL(url);
  const found = hasSrvRecords({ url, ...rest })
    ? resolver.resolveService(hostname)
    : resolver.resolveHost(hostname);
  const { promise: timedOut, resolve } = Promise.withResolvers<readonly Endpoint[]>();
  const timer = setTimeout(() => resolve([]), LOOKUP_TIMEOUT_MS);
  try {
    return await Promise.race([found, timedOut]);
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
}

async function checkReplica(
  config: ReplicaConfig,
  { connectMs, healthPath }: CheckSettings,
): Promise<ReplicaCheck> {
  const startedMs = performance.now();
  const connections = createProbeConnections(config, connectMs);
  const target = { connections, pathPrefix: pathPrefixOf(config.url), config };
  try {
    const result = await probe(target, {
      path: '/v1/models',
      accept: 'application/json',
      timeoutMs: PROBE_TIMEOUT_MS,
      isWanted: (status) => status === 200 || status === 503,
      maxBytes: MAX_LIST_BYTES,
      onLongBody: 'ignore',
    });
    const finding = await judge(config, result, () =>
      probe(target, {
        path: healthPath,
        accept: '*/*',
        timeoutMs: PROBE_TIMEOUT_MS,
        isWanted: () => true,
        maxBytes: MAX_HEALTH_BYTES,
        onLongBody: 'truncate',
      }),
    );
    return { name: config.name, found: null, ...finding, durationMs: performance.now() - startedMs };
  } finally {
    await connections.destroy();
  }
}

/** Judges as the gateway does when it runs. `probeHealth` asks for the health path. */
async function judge(
  config: ReplicaConfig,
  result: ProbeResult,
  probeHealth: () => Promise<ProbeResult>,
): Promise<Finding> {
  const target = config.url;
  const isList = result.kind === 'answer' && result.status === 200;
  const listing = isList ? parseModelList(result.text) : null;
  const finding = result.kind === 'failure' ? result.reason : toListFinding(result, listing !== null);
  if (result.kind === 'answer' && (result.status === 401 || result.status === 403)) {
    return toRefusal(config, result.status);
  }
  if (finding === 'reachable') return toReachable(config, result, listing);
  // Some servers of embeddings have no list. They need none if their models are configured.
  if (finding === 'not_an_engine' && config.models !== 'auto') {
    const health = await probeHealth();
    if (health.kind === 'answer' && isHealthy(health)) {
      return { target, isOk: true, result: 'answers, without a list of models', advice: null };
    }
  }
  const advice = await adviseOnReplica(config, finding, result);
  return { target, isOk: false, result: finding, advice };
}

/** Without a key of the gateway's own, the keys of clients pass; then only the list of models is not to be had. */
function toRefusal({ url: target, apiKey, models }: ReplicaConfig, status: number): Finding {
  const result = `status ${status}`;
  if (apiKey !== null) return { target, isOk: false, result, advice: 'it refuses the key: correct api_key' };
  const isOk = models !== 'auto';
  return { target, isOk, result, advice: isOk ? null : 'it wants a key: set api_key, or list its models' };
}

function toReachable(
  { url: target, models, engine }: ReplicaConfig,
  result: ProbeResult,
  listing: ReturnType<typeof parseModelList>,
): Finding {
  if (listing === null) {
    const status = result.kind === 'answer' ? result.status : 0;
    return { target, isOk: true, result: `answers with status ${status}`, advice: null };
  }
  const listed = listing.models ?? [];
  const missing =
    models === 'auto' || models.includes('*') ? [] : models.filter((name) => !listed.includes(name));
  return {
    target,
    isOk: true,
    result: 'ok',
    advice:
      missing.length === 0 ? null : `it does not list ${missing.join(', ')}: compare models with its own`,
    found: { engine: engine === 'auto' ? (listing.engine ?? 'openai') : engine, models: listed },
  };
}

/** The pods that would be replicas; if there are none, `result` and `advice` say why. */
interface ListedPods {
  readonly endpoints: readonly Endpoint[];
  /** What was asked. */
  readonly target: string;
  readonly result: string;
  readonly advice: string;
}

/** Reads the EndpointSlices of a Service once. Never rejects. */
async function listPods(source: KubernetesSource): Promise<ListedPods> {
  const { apiServer, service } = source;
  const target = `${apiServer}, Service ${service}`;
  try {
    const { slices } = await createSliceApi(source).list(new AbortController().signal);
    const { endpoints, isPortMissing } = toReadyEndpoints(slices, source);
    const advice = isPortMissing
      ? 'its pods have no such port, or several: set port or port_name to one of them'
      : slices.length === 0
        ? 'it has no EndpointSlices: correct service and namespace'
        : 'none of its pods is ready: look at the pods';
    return { endpoints, target, result: 'no_pods', advice };
  } catch (error) {
    const { code, status, reason } = toApiError(error);
    const detail = status === null ? reason : `status ${status}`;
    const result = detail === null ? code : `${code} (${detail})`;
    return { endpoints: [], target, result, advice: adviceOf(code, reason) };
  }
}

function adviceOf(code: ApiFailureCode, reason: string | null): string {
  if (code !== 'unreachable' || reason === null) return ADVICE[code];
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'its certificate is for other names: set api_server to one of them';
  return CERTIFICATE_PROBLEM.test(reason)
    ? 'check ca_file: it must have the authority of its certificate'
    : ADVICE[code];
}

/** Codes of OpenSSL that say that a certificate is not trusted. */
const CERTIFICATE_PROBLEM = /CERT|SIGNATURE/;

const ADVICE: Readonly<Record<ApiFailureCode, string>> = {
  no_service_account:
    'token_file, ca_file or the file namespace cannot be used: mount the token of the service account',
  unreachable: 'check api_server, its certificate and the network policy',
  refused: 'its service account may not list endpointslices in this namespace: give it the Role',
  gone: 'try again',
  bad_status: 'check that api_server is the URL of a Kubernetes API server',
  malformed_answer: 'check that api_server is the URL of a Kubernetes API server',
  answer_too_large: 'check that api_server is the URL of a Kubernetes API server',
  cut: 'try again, and look at the network',
};
