import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../config/config.ts';
import { toReachability } from '../reachability.ts';
import type { HealthTable } from '../shared/health-table.ts';
import { type HealthLog, logFailing, logOk } from './health-log.ts';
import { probeHealth } from './health-probe.ts';
import type { RegisteredReplica, ReplicaRegistry } from './registry.ts';

/** Whom the probes work with. */
export interface HealthCheckerCollaborators {
  readonly registry: ReplicaRegistry;
  readonly board: HealthTable;
  readonly log: HealthLog;
}

/** What the last probes of a replica said. */
interface Verdict {
  failures: number;
  successes: number;
  isAsked: boolean;
}

/**
 * The control plane's part in `health`: asks one replica after the other, each once in an interval, and says on the
 * board which of them fail. Drained ones are left in peace.
 */
export class HealthChecker {
  readonly #with: HealthCheckerCollaborators;
  #settings: Config['health'];
  #verdicts = new WeakMap<RegisteredReplica, Verdict>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: Config['health'], collaborators: HealthCheckerCollaborators) {
    this.#settings = settings;
    this.#with = collaborators;
    this.#with.board.configure(settings);
  }

  /** Asks a replica now, whatever the settings, and notes whether it answers. A drained one is left in peace. */
  async askNow(replica: RegisteredReplica, timeoutMs: number): Promise<void> {
    if (replica.drain.drained) return;
    const reachability = toReachability(await probeHealth(replica, { path: this.#settings.path, timeoutMs }));
    if (!replica.drain.drained) replica.noteReachability(reachability);
  }

  start(): void {
    this.stop();
    if (this.#settings.active) this.#schedule();
  }

  /** Judges by other settings, and what was known by the former ones is forgotten. */
  configure(settings: Config['health']): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    const { board, registry } = this.#with;
    this.#settings = settings;
    this.#verdicts = new WeakMap();
    board.configure(settings);
    for (const { slot } of registry.replicas) board.forget(slot);
    this.start();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Spread over the interval: a thousand replicas are not asked in one moment. */
  #schedule(): void {
    const { length } = this.#with.registry.replicas;
    this.#timer = setTimeout(() => this.#askNext(), this.#settings.intervalMs / Math.max(1, length));
    this.#timer.unref();
  }

  #askNext(): void {
    const { replicas } = this.#with.registry;
    const replica = replicas[this.#next++ % replicas.length];
    if (replica !== undefined && !replica.drain.drained) void this.#ask(replica);
    this.#schedule();
  }

  async #ask(replica: RegisteredReplica): Promise<void> {
    const verdict = this.#verdicts.get(replica) ?? { failures: 0, successes: 0, isAsked: false };
    if (verdict.isAsked) return;
    this.#verdicts.set(replica, verdict);
    verdict.isAsked = true;
    const answer = await probeHealth(replica, this.#settings);
    const isOk = answer !== null && answer.status >= 200 && answer.status < 300;
    verdict.isAsked = false;
    // By other settings it is asked anew; one that was drained may be about to stop.
    if (this.#verdicts.get(replica) !== verdict) return;
    if (replica.drain.drained) {
      this.#verdicts.delete(replica);
      return;
    }
    replica.noteReachability(toReachability(answer));
    this.#judge(replica, verdict, isOk);
  }

  #judge({ slot, name }: RegisteredReplica, verdict: Verdict, isOk: boolean): void {
    const { board, log } = this.#with;
    verdict.failures = isOk ? 0 : verdict.failures + 1;
    verdict.successes = isOk ? verdict.successes + 1 : 0;
    if (verdict.failures >= this.#settings.failures && board.markFailing(slot, 'probes')) {
      logFailing(log, name, 'probes');
    }
    const isReachable = isOk && board.noteAnswered(slot);
    const isHealthy = verdict.successes >= this.#settings.successes && board.clearFailing(slot, 'probes');
    if (isReachable || isHealthy) logOk(log, name);
  }
}
