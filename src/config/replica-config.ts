import { type KubernetesSection, type KubernetesSource, toKubernetesSource } from './kubernetes-source.ts';
import type { ConfigFile } from './schema.ts';

type ReplicaEntry = Omit<ConfigFile['replicas'][number], 'url' | 'dns' | 'kubernetes'>;

/** Converts the keys of an entry with a `url`. */
export function toReplicaConfig(url: string, entry: ReplicaEntry) {
  return { name: entry.name, url, host: entry.host ?? new URL(url).hostname, ...toCommonSettings(entry) };
}

/** Converts the keys of an entry whose `url` has a DNS name for several replicas. */
export function toServiceConfig(url: string, entry: ReplicaEntry): ServiceSettings {
  return { name: entry.name, url, host: entry.host ?? null, ...toCommonSettings(entry) };
}

interface ServiceSettings extends CommonSettings {
  name: string;
  url: string;
  host: string | null;
  kubernetes?: KubernetesSource;
}

/**
 * Converts the keys of an entry with `kubernetes`. The host of the URL is the name in the certificate of the pods, if
 * they have one.
 */
export function toPodsConfig(section: KubernetesSection, entry: ReplicaEntry): ServiceSettings {
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
