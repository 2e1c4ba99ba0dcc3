import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubernetesApi, KubernetesList } from './api.ts';

/** An EndpointSlice, as far as names need it. */
interface Slice {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly endpoints: readonly { readonly addresses: readonly string[] }[] | null;
}

/**
 * Writes an `/etc/hosts` in the place of the cluster's DNS: the Services of a namespace, each with the addresses behind
 * it, as headless ones have them. `hosts`: further lines. Returns its path.
 */
export async function writeHosts(
  api: KubernetesApi,
  namespace: string,
  { folder, hosts }: { readonly folder: string; readonly hosts: readonly string[] },
): Promise<string> {
  const list = await api.get<KubernetesList<Slice>>(
    `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
  );
  const lines = list.items.flatMap(({ metadata, endpoints }) => {
    const service = metadata.labels?.['kubernetes.io/service-name'] ?? metadata.name;
    return (endpoints ?? []).flatMap(({ addresses }) =>
      addresses.map((address) => `${address} ${service} ${service}.${namespace} ${service}.${namespace}.svc`),
    );
  });
  const path = join(folder, 'hosts');
  await writeFile(path, `${['127.0.0.1 localhost', ...hosts, ...lines].join('\n')}\n`);
  return path;
}
