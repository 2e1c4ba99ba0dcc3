import type { Log } from '#otel/base';
import type { HealthDecision, HealthJudge, HealthVerdict } from '#replicas/health-state';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';

/** A decision as a span shows it: see `AdminAction` of otel/span. */
export interface HealthAction {
  readonly action: `replica_${HealthVerdict}`;
  readonly replica: string;
  readonly inflight: number;
  readonly judge: HealthJudge;
  readonly verdict: HealthVerdict;
  /** What was seen, in words; null if the judge says all. */
  readonly reason: string | null;
  readonly tokenName: null;
  readonly startEpochMs: number;
}

export interface HealthDecisionsCollaborators {
  readonly registry: Pick<ReplicaRegistry, 'find'>;
  readonly log: Log<'info'>;
  /** Makes the span of a decision. */
  readonly onAction: (action: HealthAction) => void;
  readonly epochMs?: () => number;
  /** Monotonic. */
  readonly nowMs?: () => number;
}

/** How often a judge has decided so. */
export interface HealthDecisionCount {
  readonly judge: HealthJudge;
  readonly verdict: HealthVerdict;
  readonly count: number;
}

/** What was decided of one replica. */
interface History {
  readonly counts: Map<string, HealthDecisionCount>;
  /** Since when it fails, or is on probation, by each judge: monotonic, as the time of day may be set meanwhile. */
  readonly sinceMs: Map<HealthJudge, number>;
}

/** Logs and counts every decision on the health of a replica, on any thread, and makes its span. */
export class HealthDecisions {
  readonly #collaborators: HealthDecisionsCollaborators;
  readonly #histories = new WeakMap<RegisteredReplica, History>();

  constructor(collaborators: HealthDecisionsCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Notes a decision. One on a replica that has been removed meanwhile is of no interest. */
  note({ replica: name, judge, verdict, forMs, reason }: HealthDecision): void {
    const { registry, onAction, epochMs = Date.now, nowMs = () => performance.now() } = this.#collaborators;
    const replica = registry.find(name);
    if (replica === undefined) return;
    const { counts, sinceMs } = this.#historyOf(replica);
    const key = `${judge} ${verdict}`;
    counts.set(key, { judge, verdict, count: (counts.get(key)?.count ?? 0) + 1 });
    const atMs = nowMs();
    const isFound = verdict === 'failing' || verdict === 'kept';
    const lastedMs = isFound ? forMs : Math.round(atMs - (sinceMs.get(judge) ?? atMs));
    if (verdict === 'ok') sinceMs.delete(judge);
    else sinceMs.set(judge, atMs);
    const { inflight } = replica;
    this.#log(verdict, replica, {
      replica: name,
      judge,
      lasted_ms: lastedMs,
      inflight,
      ...(reason === undefined ? {} : { reason }),
    });
    onAction({
      action: `replica_${verdict}` as const,
      replica: name,
      inflight,
      judge,
      verdict,
      reason: reason ?? null,
      tokenName: null,
      startEpochMs: epochMs() - lastedMs,
    });
  }

  #log(verdict: HealthVerdict, { health }: RegisteredReplica, fields: object): void {
    const { log } = this.#collaborators;
    const others = health?.failingBy ?? [];
    if (verdict === 'failing') log.info(fields, 'replica failing: tried last');
    else if (verdict === 'kept') log.info(fields, 'replica worse than its peers: too few others serve');
    else if (others.length > 0) log.info({ ...fields, still: others }, 'replica still failing: tried last');
    else if (verdict === 'ok') log.info(fields, 'replica ok: no longer tried last');
    else log.info(fields, 'replica on probation: its share of turns grows');
  }

  /** How often each decision was taken on a replica, since the gateway knows it. */
  countsOf(replica: RegisteredReplica): readonly HealthDecisionCount[] {
    return [...(this.#histories.get(replica)?.counts.values() ?? [])];
  }

  #historyOf(replica: RegisteredReplica): History {
    const known = this.#histories.get(replica);
    if (known !== undefined) return known;
    const history: History = { counts: new Map(), sinceMs: new Map() };
    this.#histories.set(replica, history);
    return history;
  }
}
