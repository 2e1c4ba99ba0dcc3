import { execFile } from 'node:child_process';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { KubernetesApi } from './api.ts';
import type { Pod, Projection, Volume } from './pod.ts';

const run = promisify(execFile);

/** What is asked for a token. */
interface TokenRequest {
  readonly spec: { readonly expirationSeconds: number; readonly boundObjectRef?: object };
  readonly status: { readonly token: string };
}

/** The folders of a pod's volumes by name, filled as a kubelet fills them. `fsGroup`: whom they belong to. */
export async function makeVolumes(
  api: KubernetesApi,
  pod: Pod,
  { folder, claims, fsGroup }: { readonly folder: string; readonly claims: string; readonly fsGroup: number },
): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  for (const volume of pod.spec.volumes ?? []) {
    const claim = volume.persistentVolumeClaim?.claimName;
    const path = claim === undefined ? join(folder, volume.name) : join(claims, claim);
    await mkdir(path, { recursive: true });
    await fillVolume(api, pod, volume, path);
    await run('chown', ['-R', `${fsGroup}:${fsGroup}`, path]);
    folders.set(volume.name, path);
  }
  return folders;
}

/** Fills a volume with what the API has now. One that nothing fills stays as it is. */
export async function fillVolume(api: KubernetesApi, pod: Pod, volume: Volume, path: string): Promise<void> {
  const { namespace = 'default' } = pod.metadata;
  const read = <T>(kind: string, name: string) =>
    api.get<T>(`/api/v1/namespaces/${namespace}/${kind}/${name}`);
  const readConfigMap = async (name: string) =>
    (await read<{ data?: Record<string, string> }>('configmaps', name)).data ?? {};
  if (volume.configMap !== undefined) await writeAtOnce(path, await readConfigMap(volume.configMap.name));
  if (volume.secret !== undefined) {
    const { data = {} } = await read<{ data?: Record<string, string> }>('secrets', volume.secret.secretName);
    const decode = ([name, value]: [string, string]) => [name, Buffer.from(value, 'base64').toString()];
    await writeAtOnce(path, Object.fromEntries(Object.entries(data).map(decode)));
  }
  if (volume.projected === undefined) return;
  const files: Record<string, string> = {};
  for (const { serviceAccountToken, configMap, downwardAPI } of volume.projected.sources) {
    if (serviceAccountToken !== undefined)
      files[serviceAccountToken.path] = await requestToken(api, pod, serviceAccountToken);
    if (configMap !== undefined) {
      const data = await readConfigMap(configMap.name);
      const items = configMap.items ?? Object.keys(data).map((key) => ({ key, path: key }));
      for (const item of items) files[item.path] = data[item.key] ?? '';
    }
    for (const item of downwardAPI?.items ?? []) files[item.path] = namespace; // what kube-api-access asks for
  }
  await writeAtOnce(path, files);
}

/** A token for the pod's service account that ends with the pod, by TokenRequest. */
async function requestToken(
  api: KubernetesApi,
  pod: Pod,
  { expirationSeconds }: Required<Projection>['serviceAccountToken'],
): Promise<string> {
  const { namespace = 'default', name, uid } = pod.metadata;
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${pod.spec.serviceAccountName}/token`;
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
  };
  return (await api.create<TokenRequest>(account, request)).status.token;
}

let generation = 0;

/** Replaces all files of a folder in one step, as a kubelet does: they are links into a folder that a link names. */
async function writeAtOnce(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const stamp = `..${++generation}`;
  await mkdir(join(folder, stamp));
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, stamp, name), content);
    await symlink(join('..data', name), join(folder, name)).catch(() => undefined); // it is there already
  }
  await rm(join(folder, '..next'), { force: true });
  await symlink(stamp, join(folder, '..next'));
  await rename(join(folder, '..next'), join(folder, '..data'));
}
