import type { HealthDecision, HealthJudge } from '../../health-decision.ts';
import type { RegisteredReplica, ReplicaRegistry } from '../registry.ts';

/** A decision as a span shows it: see `AdminAction` of otel/span. */
export interface HealthAction {
  readonly action: `replica_${HealthDecision['verdict']}`;
  readonly replica: string;
  readonly inflight: number;
  readonly judge: HealthJudge;
  readonly verdict: HealthDecision['verdict'];
  readonly tokenName: null;
  readonly startEpochMs: number;
}

export interface HealthDecisionsCollaborators {
  readonly registry: Pick<ReplicaRegistry, 'find'>;
  /** A pino logger fits. */
  readonly log: Record<'info' | 'warn', (fields: object, message: string) => void>;
  /** Makes the span of a decision. */
  readonly onAction: (action: HealthAction) => void;
  readonly epochMs?: () => number;
}

/** How often a judge has decided so. */
export interface HealthDecisionCount {
  readonly judge: HealthJudge;
  readonly verdict: HealthDecision['verdict'];
  readonly count: number;
}

/** What was decided of one replica. */
interface History {
  readonly counts: Map<string, HealthDecisionCount>;
  /** Since when the judges that find that it fails do so: milliseconds since 1970. */
  readonly failingSinceMs: Map<HealthJudge, number>;
}

/** Logs and counts every decision on the health of a replica, on any thread, and makes its span. */
export class HealthDecisions {
  readonly #collaborators: HealthDecisionsCollaborators;
  readonly #histories = new WeakMap<RegisteredReplica, History>();

  constructor(collaborators: HealthDecisionsCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Notes a decision. One on a replica that has been removed meanwhile is of no interest. */
  note({ replica: name, judge, verdict, forMs }: HealthDecision): void {
    const { registry, log, onAction, epochMs = Date.now } = this.#collaborators;
    const replica = registry.find(name);
    if (replica === undefined) return;
    const { counts, failingSinceMs } = this.#historyOf(replica);
    const key = `${judge} ${verdict}`;
    counts.set(key, { judge, verdict, count: (counts.get(key)?.count ?? 0) + 1 });
    const nowMs = epochMs();
    const lastedMs = verdict === 'failing' ? forMs : nowMs - (failingSinceMs.get(judge) ?? nowMs);
    if (verdict === 'failing') failingSinceMs.set(judge, nowMs);
    else failingSinceMs.delete(judge);
    const { inflight } = replica;
    const fields = { replica: name, judge, lasted_ms: lastedMs, inflight };
    const others = replica.health?.failingBy ?? [];
    if (verdict === 'failing') log.warn(fields, 'replica failing: tried last');
    else if (others.length === 0) log.info(fields, 'replica ok: no longer tried last');
    else log.info({ ...fields, still: others }, 'replica still failing: tried last');
    onAction({
      ...{ action: `replica_${verdict}` as const, replica: name, inflight, judge, verdict },
      ...{ tokenName: null, startEpochMs: nowMs - lastedMs },
    });
  }

  /** How often each decision was taken on a replica, since the gateway knows it. */
  countsOf(replica: RegisteredReplica): readonly HealthDecisionCount[] {
    return [...(this.#histories.get(replica)?.counts.values() ?? [])];
  }

  #historyOf(replica: RegisteredReplica): History {
    const known = this.#histories.get(replica);
    if (known !== undefined) return known;
    const history: History = { counts: new Map(), failingSinceMs: new Map() };
    this.#histories.set(replica, history);
    return history;
  }
}
