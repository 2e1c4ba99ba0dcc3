import { itemsOf, memberOf, parseJson } from '#base/parsed';
import type { KubernetesSource } from '../servers.ts';
import { ApiError, type ApiFailureCode, callApi, readText, toApiError, toStatusError } from './api-call.ts';

/** The pods with some labels, or why they are not known. */
export type ListedPodUids =
  | { readonly kind: 'listed'; readonly uids: readonly string[] }
  /** There is no Service whose namespace could be asked. */
  | { readonly kind: 'no_source' }
  | { readonly kind: 'failed'; readonly failure: ApiFailureCode };

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 16 * 1024 ** 2;

/** Metadata alone: what the pods run, and with which secrets, is not sent. */
const ONLY_METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/**
 * The uids of the pods with all of these labels (`key=value`) in the namespaces of these Services. It needs the right to
 * `list` `pods`. Never rejects.
 */
export async function listPodUids(
  sources: readonly KubernetesSource[],
  labels: readonly string[],
): Promise<ListedPodUids> {
  if (sources.length === 0) return { kind: 'no_source' };
  // Several Services of one namespace are one question.
  const byNamespace = new Map(
    sources.map((source) => [JSON.stringify([source.apiServer, source.namespace, source.tokenFile]), source]),
  );
  try {
    const lists = await Promise.all([...byNamespace.values()].map((source) => list(source, labels)));
    return { kind: 'listed', uids: lists.flat() };
  } catch (error) {
    return { kind: 'failed', failure: toApiError(error).code };
  }
}

async function list(source: KubernetesSource, labels: readonly string[]): Promise<readonly string[]> {
  const search = new URLSearchParams({ labelSelector: labels.join(','), resourceVersion: '0' });
  const path = (namespace: string) => `/api/v1/namespaces/${namespace}/pods?${search}`;
  await using call = await callApi(source, { path, accept: ONLY_METADATA }, AbortSignal.timeout(TIMEOUT_MS));
  if (call.status !== 200) throw toStatusError(call);
  const answer = parseJson(await readText(call.body, MAX_BYTES));
  if (!Array.isArray(memberOf(answer, 'items'))) throw new ApiError('malformed_answer');
  return itemsOf(answer, 'items').flatMap((item) => {
    const uid = memberOf(memberOf(item, 'metadata'), 'uid');
    return typeof uid === 'string' ? [uid] : [];
  });
}
