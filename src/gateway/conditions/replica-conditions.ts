import type { PairLog } from '#comparisons';
import type { Finding, Producer } from '#conditions';
import { REASON_TEXTS } from '#replicas/reachability';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';

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

function toSince(since: string | null): { readonly sinceEpochMs?: number } {
  return since === null ? {} : { sinceEpochMs: Date.parse(since) };
}
