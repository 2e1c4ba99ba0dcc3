import type { Endpoint } from '../../resolver.ts';
import type { PodReference } from './pod-condition-api.ts';

/** A pod that is not ready, and what the gateway has done about it. */
export interface UnreadyPod {
  readonly reference: PodReference;
  /** When it was first seen: monotonic, and in RFC 3339. */
  readonly seenAtMs: number;
  readonly since: string;
  endpoint: Endpoint;
  /** When it is asked next: monotonic. */
  dueAtMs: number;
  isConfirmed: boolean;
  /** What it waits for, as a phrase; null before it was asked. */
  problem: string | null;
  loggedProblem: string | null;
  loggedAtMs: number;
}

/**
 * Makes `pods`, which are by uid, those that are not ready now. One that stays keeps what is known of it. Returns the uids
 * of the others, which became ready or end.
 */
export function takePods(
  pods: Map<string, UnreadyPod>,
  unready: readonly Endpoint[],
  nowMs: number,
): readonly string[] {
  const found = new Map(unready.flatMap(toReferences));
  const left = [...pods.keys()].filter((uid) => !found.has(uid));
  for (const uid of left) pods.delete(uid);
  for (const [uid, { reference, endpoint }] of found) {
    const known = pods.get(uid);
    if (known !== undefined) known.endpoint = endpoint;
    else pods.set(uid, newPod(reference, endpoint, nowMs));
  }
  return left;
}

function newPod(reference: PodReference, endpoint: Endpoint, nowMs: number): UnreadyPod {
  return {
    reference,
    endpoint,
    seenAtMs: nowMs,
    since: new Date().toISOString(),
    dueAtMs: nowMs,
    isConfirmed: false,
    problem: null,
    loggedProblem: null,
    loggedAtMs: Number.NEGATIVE_INFINITY,
  };
}

/** The name of a pod, as it may stand in a path. RFC 1123, section 2.1. */
const POD_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Without a uid the gateway could not tell the pod from the next one of its name. */
function toReferences(
  endpoint: Endpoint,
): [uid: string, { readonly reference: PodReference; readonly endpoint: Endpoint }][] {
  const { name = '', uid = null } = endpoint.server?.pod ?? {};
  if (uid === null || !POD_NAME.test(name)) return [];
  return [[uid, { reference: { name, uid }, endpoint }]];
}
