import type { PairLog } from '#comparisons';
import type { Finding, Producer } from '#conditions';
import { REASON_TEXTS } from '#replicas/reachability';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import { toSince } from './finding-parts.ts';

/** What is wrong with single replicas, as far as they themselves show it. A drained one is never wrong. */
export function createReplicaProducer(
  registry: Pick<ReplicaRegistry, 'replicas'>,
  shadows: Pick<PairLog, 'silentMsOf'>,
): Producer {
  return () => registry.replicas.flatMap((replica) => [...findingsOf(replica, shadows)]);
}

function* findingsOf(replica: RegisteredReplica, shadows: Pick<PairLog, 'silentMsOf'>): Generator<Finding> {
  const subject = replica.name;
  const { reachability, health, ramp, inflight, shadow } = replica;
  const reached = toReachabilityFinding(subject, reachability.reason);
  if (reached !== null) yield { ...reached, ...toSince(reachability.since) };
  const judges = health?.failingBy ?? [];
  const since = toSince(health?.since ?? null);
  if (judges.includes('slow')) yield { id: 'replica_slower', subject, figures: {}, ...since };
  if (judges.includes('frozen')) yield { id: 'replica_frozen', subject, figures: {}, ...since };
  const others = judges.filter((judge) => judge !== 'slow' && judge !== 'frozen');
  if (others.length > 0)
    yield { id: 'replica_failing', subject, figures: { judges: others.join(', ') }, ...since };
  const { count: silent, running, oldestMs } = replica.silence;
  if (oldestMs !== null)
    yield { id: 'replica_streams_silent', subject, figures: { silent, running, oldest: oldestMs / 1_000 } };
  const silentMs = shadow === null ? null : shadows.silentMsOf(subject);
  if (silentMs !== null)
    yield { id: 'shadow_silent', subject, figures: { inflight, silence: silentMs / 1_000 } };
  if (ramp !== null) yield { id: 'ramp_running', subject, figures: { share: ramp.share } };
}

function toReachabilityFinding(
  subject: string,
  reason: RegisteredReplica['reachability']['reason'],
): Finding | null {
  switch (reason) {
    case null:
      return null;
    case 'loading_model':
      return { id: 'replica_loading', subject, figures: {} };
    case 'tls_failed':
      return { id: 'replica_tls_failed', subject, figures: {} };
    case 'name_not_resolved':
      return { id: 'replica_name_unresolved', subject, figures: {} };
    case 'not_http':
    case 'not_an_engine':
      return { id: 'replica_wrong_server', subject, figures: { reason: REASON_TEXTS[reason] } };
    default:
      return { id: 'replica_unreachable', subject, figures: { reason: REASON_TEXTS[reason] } };
  }
}

/** How far above the median of its peers is far. */
const FAR = { times: 4, more: 16 } as const;

/** Replicas that have far more requests in flight than those of the same models. */
export function createBacklogProducer(registry: Pick<ReplicaRegistry, 'replicas'>): Producer {
  return function* (): Generator<Finding> {
    const serving = registry.replicas.filter(getsItsTurns);
    if (!serving.some(({ inflight }) => inflight >= FAR.more)) return;
    for (const alike of Map.groupBy(serving, toKind).values()) yield* ofAlike(alike);
  };
}

function* ofAlike(alike: readonly RegisteredReplica[]): Generator<Finding> {
  const counts = alike.map(({ name, inflight }) => ({ name, inflight }));
  const sorted = counts.map(({ inflight }) => inflight).toSorted((a, b) => a - b);
  for (const { name: subject, inflight } of counts) {
    if (inflight < FAR.more) continue;
    const peers = medianOfOthers(sorted, inflight);
    if (peers === null || inflight < FAR.times * peers || inflight < peers + FAR.more) continue;
    yield { id: 'replica_backlog', subject, figures: { inflight, peers } };
  }
}

/** One that is skipped, tried last or warms up has less in flight than the others, which says nothing about them. */
function getsItsTurns({ drain, reachability, health, ramp, shadow }: RegisteredReplica): boolean {
  const { reason } = reachability;
  return shadow === null && !drain.drained && reason === null && health?.state !== 'failing' && ramp === null;
}

/** Those with the same models and the same GPUs are of one kind. */
function toKind({ models, config }: RegisteredReplica): string {
  return JSON.stringify([models?.toSorted() ?? null, config.gpuModel, config.gpuCount, config.maxInflight]);
}

/** The median of all but one; of two in the middle the greater one. Null: there is no other. */
function medianOfOthers(sorted: readonly number[], own: number): number | null {
  const middle = Math.floor((sorted.length - 1) / 2);
  return (middle < sorted.indexOf(own) ? sorted[middle] : sorted[middle + 1]) ?? null;
}
