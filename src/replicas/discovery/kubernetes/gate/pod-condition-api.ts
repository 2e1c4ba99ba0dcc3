import { itemsOf, memberOf, parseJson } from '#base/parsed';
import type { KubernetesSource } from '../../servers.ts';
import { ApiError, callApi, readText, toStatusError } from '../api-call.ts';

/** For a whole call. */
const PATCH_TIMEOUT_MS = 15_000;

/** An object of the API server has up to 1.5 MiB. */
const MAX_POD_BYTES = 4 * 1024 ** 2;
const MAX_STATUS_BYTES = 64 * 1024;

/** A pod, as EndpointSlices name it. */
export interface PodReference {
  readonly name: string;
  readonly uid: string;
}

/** A condition of a pod. */
export interface PodCondition {
  readonly type: string;
  /** When it became true, in RFC 3339; null: the time that it has stays. */
  readonly since: string | null;
}

/** `no_gate`: the pod has the condition now, but does not wait for it. `gone`: there is no such pod any more. */
export type ConditionOutcome = 'written' | 'no_gate' | 'gone';

/**
 * Makes a condition of a pod true. Its uid is a precondition: another pod of the same name is not touched. Rejects with
 * an ApiError.
 *
 * Kubernetes merges the conditions of a status by their type:
 * https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate
 */
export async function makeConditionTrue(
  source: KubernetesSource,
  pod: PodReference,
  condition: PodCondition,
  signal: AbortSignal,
): Promise<ConditionOutcome> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(PATCH_TIMEOUT_MS)]);
  const path = (namespace: string) =>
    `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(pod.name)}/status?fieldManager=spangate`;
  await using call = await callApi(source, { path, patch: toPatch(pod, condition) }, limited);
  if (call.status === 200) return readOutcome(await readText(call.body, MAX_POD_BYTES), pod, condition.type);
  if (call.status === 404 || call.status === 409) return 'gone';
  if (call.status === 422 && isOfAnotherPod(await readText(call.body, MAX_STATUS_BYTES))) return 'gone';
  throw toStatusError(call);
}

function toPatch({ uid }: PodReference, { type, since }: PodCondition): object {
  const condition = {
    type,
    status: 'True',
    reason: 'Answers',
    message: 'The gateway got a list of models from the pod.',
    ...(since === null ? {} : { lastTransitionTime: since }),
  };
  return { metadata: { uid }, status: { conditions: [condition] } };
}

/** Reads the pod that the API server answers with. */
function readOutcome(text: string, { uid }: PodReference, type: string): 'written' | 'no_gate' {
  const pod = parseJson(text);
  const conditions = itemsOf(memberOf(pod, 'status'), 'conditions');
  const isTrue = conditions.some(
    (each) => memberOf(each, 'type') === type && memberOf(each, 'status') === 'True',
  );
  if (memberOf(memberOf(pod, 'metadata'), 'uid') !== uid || !isTrue) throw new ApiError('malformed_answer');
  const gates = itemsOf(memberOf(pod, 'spec'), 'readinessGates');
  return gates.some((gate) => memberOf(gate, 'conditionType') === type) ? 'written' : 'no_gate';
}

/** The uid in a patch is immutable, so the API server refuses one for a pod that has another. */
function isOfAnotherPod(text: string): boolean {
  const causes = itemsOf(memberOf(parseJson(text), 'details'), 'causes');
  return causes.some((cause) => memberOf(cause, 'field') === 'metadata.uid');
}
