import { type HealthTable, type Silence, type SilenceTable, toSampleMs } from '#replicas/shared';
import { groupByModel } from '#replicas/terms';
import type { RegisteredReplica } from '../registry/registered-replica.ts';
import type { ReplicaRegistry } from '../registry/registry.ts';
import type { HealthDecisions } from './health-decisions.ts';

export interface FrozenWatchCollaborators {
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly table: HealthTable;
  readonly silences: SilenceTable;
  readonly decisions: Pick<HealthDecisions, 'note'>;
}

/**
 * Finds replicas that are frozen: a request has waited on them, and nothing has come from them on any connection, for
 * `health.frozen_after`, while another replica of the same model sent something. A replica without such a peer is never
 * frozen: its silence may be that of a long prompt.
 */
export class FrozenWatch {
  readonly #collaborators: FrozenWatchCollaborators;
  /** When frozen replicas were found so, in milliseconds of the clock that all threads share. */
  readonly #frozenAtMs = new WeakMap<RegisteredReplica, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: FrozenWatchCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Checks from now on; with null, not any more. */
  start(frozenAfterMs: number | null): void {
    this.stop();
    if (frozenAfterMs === null) return;
    this.#timer = setInterval(() => this.check(frozenAfterMs), toSampleMs(frozenAfterMs));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Judges all replicas that are not drained by what the workers have sampled. */
  check(frozenAfterMs: number): void {
    const { registry, silences } = this.#collaborators;
    // A worker whose thread stalls has not read what replicas have sent since.
    const asOfMs = silences.oldestSampleMs;
    if (asOfMs === null) return;
    const replicas = registry.replicas.filter(({ drain }) => !drain.drained);
    const seen = new Map(replicas.map((replica) => [replica, silences.silenceOf(replica.slot)]));
    const sinceMs = asOfMs - frozenAfterMs;
    const { byModel, ofUnknown } = groupByModel(replicas);
    const besideHeard = new Set(
      [...byModel.values(), ofUnknown].flatMap((group) =>
        group.some((replica) => wasHeard(seen.get(replica), sinceMs)) ? group : [],
      ),
    );
    for (const [replica, silence] of seen) {
      if (this.#collaborators.table.isFailingBy(replica.slot, 'frozen')) this.#recover(replica, silence);
      else if (besideHeard.has(replica) && isSilent(silence, sinceMs)) this.#freeze(replica, silence);
    }
  }

  #freeze(replica: RegisteredReplica, { heardMs, waitingSinceMs }: Silence): void {
    const { table, silences, decisions } = this.#collaborators;
    const nowMs = silences.nowMs();
    const forMs = Math.round(nowMs - Math.max(heardMs ?? 0, waitingSinceMs ?? 0));
    this.#frozenAtMs.set(replica, nowMs);
    table.noteFrozen(replica.slot);
    decisions.note({ replica: replica.name, judge: 'frozen', verdict: 'failing', forMs });
  }

  /** Any byte since then shows that it is awake. */
  #recover(replica: RegisteredReplica, { heardMs }: Silence): void {
    const { table, decisions } = this.#collaborators;
    const frozenAtMs = this.#frozenAtMs.get(replica) ?? 0;
    if (heardMs === null || heardMs <= frozenAtMs) return;
    table.clearFailing(replica.slot, 'frozen');
    decisions.note({ replica: replica.name, judge: 'frozen', verdict: 'ok', forMs: 0 });
  }
}

function wasHeard(silence: Silence | undefined, sinceMs: number): boolean {
  return silence !== undefined && silence.heardMs !== null && silence.heardMs > sinceMs;
}

function isSilent(silence: Silence, sinceMs: number): boolean {
  const { waitingSinceMs } = silence;
  return waitingSinceMs !== null && waitingSinceMs <= sinceMs && !wasHeard(silence, sinceMs);
}
