import type { Finding, Producer } from '#conditions';
import { isAttemptError, toFailedAttemptOutcome, toLastAttemptOutcome, toOutcome } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import { RecentCount } from './recent-count.ts';

/** Of fewer requests or attempts in a minute a share says little. */
const LEAST = 20;

/** From which share on it is told. */
const MANY = { errors: 0.05, clientErrors: 0.2, attemptErrors: 0.05, refusals: 0.5 } as const;

/** What the peers of a replica must have answered, and how many of it with 4xx at most, if it alone is to be blamed. */
const PEERS = { least: 5, most: 0.25 } as const;

/** Codes beyond this number are counted under one name. */
const MAX_CODES = 32;
const OTHER_CODES = '_OTHER';

/** The attempts at one replica. */
interface Attempts {
  errors: ShareWatch;
  /** Those that it answered with 4xx. */
  readonly refusals: ShareWatch;
}

/** Watches what becomes of requests and of the attempts at replicas. */
export class TrafficWatch {
  readonly #registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly #nowMs: () => number;
  readonly #requests: ShareWatch;
  readonly #clientErrors: ShareWatch;
  readonly #codes = new Map<string, RecentCount>();
  readonly #replicas = new Map<string, Attempts>();

  /** `nowMs`: monotonic milliseconds. */
  constructor(registry: Pick<ReplicaRegistry, 'replicas'>, nowMs: () => number) {
    this.#registry = registry;
    this.#nowMs = nowMs;
    this.#requests = new ShareWatch(nowMs);
    this.#clientErrors = new ShareWatch(nowMs);
  }

  /** Takes the record of a request that has ended. */
  note(record: Readonly<RequestRecord>): void {
    const outcome = toOutcome(record);
    this.#requests.note(outcome === 'error');
    // What a limit refuses has conditions of its own.
    if (record.error_type !== 'rate_limit_exceeded') {
      this.#clientErrors.note(outcome === 'client_error');
      if (outcome === 'client_error') this.#countCode(record.error_type ?? String(record.status));
    }
    for (const failed of record.failed_attempts ?? [])
      this.#noteAttempt(failed.replica, toFailedAttemptOutcome(failed));
    const last = toLastAttemptOutcome(record);
    if (record.replica !== undefined && last !== null) this.#noteAttempt(record.replica, last);
  }

  readonly produce: Producer = () => {
    this.#forget();
    const replicas = this.#registry.replicas.filter(isAnswering);
    return [...this.#ofRequests(), ...replicas.flatMap((replica) => this.#ofReplica(replica, replicas))];
  };

  *#ofRequests(): Generator<Finding> {
    const share = this.#requests.shareOf(LEAST) ?? 0;
    const requests = this.#requests.count;
    if (share >= MANY.errors) yield { id: 'requests_failing', subject: '', figures: { share, requests } };
    const wrong = this.#clientErrors.shareOf(LEAST) ?? 0;
    if (wrong < MANY.clientErrors) return;
    const figures = { share: wrong, code: this.#mostFrequentCode(), requests: this.#clientErrors.count };
    yield { id: 'client_errors_many', subject: '', figures };
  }

  #ofReplica(replica: RegisteredReplica, others: readonly RegisteredReplica[]): readonly Finding[] {
    const subject = replica.name;
    const attempts = this.#replicas.get(subject);
    if (attempts === undefined) return [];
    const found: Finding[] = [];
    // `replica_failing` or `replica_frozen` says so. What failed meanwhile is told by it, also when it is over.
    if (isFoundFailing(replica)) attempts.errors = new ShareWatch(this.#nowMs);
    const share = attempts.errors.shareOf(LEAST) ?? 0;
    if (share >= MANY.attemptErrors)
      found.push({
        id: 'replica_attempts_failing',
        subject,
        figures: { share, attempts: attempts.errors.count },
      });
    const refused = attempts.refusals.shareOf(LEAST) ?? 0;
    if (refused >= MANY.refusals && this.#doPeersAnswer(replica, others))
      found.push({
        id: 'replica_refuses_requests',
        subject,
        figures: { share: refused, attempts: attempts.refusals.count },
      });
    return found;
  }

  /** Whether those with a model of it answer what it refuses: otherwise the requests may be wrong. */
  #doPeersAnswer(replica: RegisteredReplica, others: readonly RegisteredReplica[]): boolean {
    let [count, refused] = [0, 0];
    for (const peer of others) {
      if (peer === replica || !hasCommonModel(peer, replica)) continue;
      const attempts = this.#replicas.get(peer.name);
      count += attempts?.refusals.count ?? 0;
      refused += attempts?.refusals.failedCount ?? 0;
    }
    return count >= PEERS.least && refused / count <= PEERS.most;
  }

  #noteAttempt(replica: string, outcome: ReturnType<typeof toFailedAttemptOutcome>): void {
    let attempts = this.#replicas.get(replica);
    if (attempts === undefined) {
      attempts = { errors: new ShareWatch(this.#nowMs), refusals: new ShareWatch(this.#nowMs) };
      this.#replicas.set(replica, attempts);
    }
    attempts.errors.note(isAttemptError(outcome));
    attempts.refusals.note(outcome === 'client_error');
  }

  #countCode(code: string): void {
    const isKnown = this.#codes.has(code) || this.#codes.size < MAX_CODES;
    const counted = isKnown ? code : OTHER_CODES;
    const count = this.#codes.get(counted) ?? new RecentCount(this.#nowMs);
    this.#codes.set(counted, count);
    count.add();
  }

  #mostFrequentCode(): string {
    const counted = [...this.#codes].map(([code, count]) => ({ code, count: count.inLast(60) }));
    return counted.toSorted((a, b) => b.count - a.count)[0]?.code ?? OTHER_CODES;
  }

  /** Forgets replicas that are gone, and codes that have not come for a minute. */
  #forget(): void {
    const names = new Set(this.#registry.replicas.map(({ name }) => name));
    for (const name of this.#replicas.keys()) if (!names.has(name)) this.#replicas.delete(name);
    for (const [code, count] of this.#codes) if (count.inLast(60) === 0) this.#codes.delete(code);
  }
}

/** One that is drained or does not answer is not asked, so that nothing could show that it is well again. */
function isAnswering({ drain, reachability }: RegisteredReplica): boolean {
  return !drain.drained && reachability.reason === null;
}

/** A slow one may fail for another reason. */
function isFoundFailing({ health }: RegisteredReplica): boolean {
  return health?.failingBy.some((judge) => judge !== 'slow') ?? false;
}

function hasCommonModel(a: RegisteredReplica, b: RegisteredReplica): boolean {
  return a.models?.some((model) => b.models?.includes(model)) ?? false;
}

/** So many have gone well in a row as would by chance in one of a hundred cases: it is over. */
const LOG_UNLIKELY = Math.log(0.01);

/** Which share of something has failed in the last minute, and whether that is over. */
class ShareWatch {
  readonly #all: RecentCount;
  readonly #failed: RecentCount;
  /** How many have gone well since the last one that failed. */
  #wellInARow = 0;

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#all = new RecentCount(nowMs);
    this.#failed = new RecentCount(nowMs);
  }

  note(hasFailed: boolean): void {
    this.#all.add();
    if (hasFailed) this.#failed.add();
    this.#wellInARow = hasFailed ? 0 : this.#wellInARow + 1;
  }

  /** How many there were in the last minute. */
  get count(): number {
    return this.#all.inLast(60);
  }

  get failedCount(): number {
    return this.#failed.inLast(60);
  }

  /**
   * The share that has failed; null if there were fewer than `least`, or if as many have gone well since as would not
   * by chance: a minute would be long to wait for what was mended.
   */
  shareOf(least: number): number | null {
    const { count, failedCount } = this;
    if (count < least || failedCount === 0) return null;
    const share = failedCount / count;
    const isOver = this.#wellInARow > 0 && this.#wellInARow * Math.log1p(-share) < LOG_UNLIKELY;
    return isOver ? null : share;
  }
}
