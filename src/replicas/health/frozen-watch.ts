import type { HealthSettings } from '#replicas/health-state';
import type { RegisteredReplica } from '#replicas/registry';
import { groupByModel } from '#replicas/routing';
import { type Silence, toSampleMs } from '#replicas/silence';
import { PartialFreezes, type PartialFreezesCollaborators } from './partial-freezes.ts';
import { toSilentSince, UsualSilences } from './usual-silences.ts';

/** When replicas are frozen: `health` of the configuration. */
export interface FrozenSettings {
  /** Null: a replica may be silent for as long as it likes. */
  readonly frozenAfterMs: HealthSettings['frozenAfterMs'];
  readonly coolDownMs: number;
  readonly peers: { readonly maxFailingShare: number } | null;
}

/** When a silence counts. */
export interface SilenceBound {
  readonly frozenAfterMs: number;
  /** Whether it counts only if it is also longer than is usual. */
  readonly sparesUsual: boolean;
}

/** What `auto` stands for: `npm run lab -- measure/frozen` compares it with other times. */
export const AUTO_BOUND: SilenceBound = { frozenAfterMs: 15_000, sparesUsual: true };

/** Without `health.peers`: its default. */
const MAX_FAILING_SHARE = 0.5;

/**
 * Finds replicas that are frozen: a request has waited on them, and nothing has come from them on any connection, for
 * `health.frozen_after`, while another replica of the same model sent something. A replica without such a peer is never
 * frozen: its silence may be that of a long prompt. With `auto`, it is also longer than is usual. Those that are frozen in
 * part are found by `PartialFreezes`.
 */
export class FrozenWatch {
  readonly #collaborators: PartialFreezesCollaborators;
  readonly #partial: PartialFreezes;
  /** When frozen replicas were found so, in milliseconds of the clock that all threads share. */
  readonly #frozenAtMs = new WeakMap<RegisteredReplica, number>();
  readonly #usual = new UsualSilences();
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: PartialFreezesCollaborators) {
    this.#collaborators = collaborators;
    this.#partial = new PartialFreezes(collaborators);
  }

  /** Checks from now on, unless the settings say that silence does not count. Forgets which streams were silent. */
  start({ frozenAfterMs, coolDownMs, peers }: FrozenSettings): void {
    this.stop();
    this.#partial.clear();
    if (frozenAfterMs === null && peers === null) return;
    const bound = toBound(frozenAfterMs);
    const maxFailingShare = peers?.maxFailingShare ?? MAX_FAILING_SHARE;
    this.#timer = setInterval(() => {
      if (bound !== null) this.check(bound);
      this.#partial.check({ coolDownMs, maxFailingShare });
    }, toSampleMs(frozenAfterMs));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Judges all replicas that are not drained, each as a whole, by what the workers have sampled. */
  check({ frozenAfterMs, sparesUsual }: SilenceBound): void {
    const { registry, silences } = this.#collaborators;
    // A worker whose thread stalls has not read what replicas have sent since.
    const asOfMs = silences.oldestSampleMs;
    if (asOfMs === null) return;
    const replicas = registry.replicas.filter(({ drain, shadow }) => shadow === null && !drain.drained);
    const seen = new Map(replicas.map((replica) => [replica, silences.silenceOf(replica.slot)]));
    const isFrozen = (replica: RegisteredReplica) =>
      this.#collaborators.table.isFailingBy(replica.slot, 'frozen');
    this.#usual.look(seen, asOfMs);
    const sinceMs = asOfMs - frozenAfterMs;
    const { byModel, ofUnknown } = groupByModel(replicas);
    const heard = [...byModel.values(), ofUnknown].filter((group) =>
      group.some((replica) => wasHeard(seen.get(replica), sinceMs)),
    );
    for (const [replica, silence] of seen) {
      if (this.#partial.isOut(replica)) continue;
      if (isFrozen(replica)) this.#recover(replica, silence);
      else if (isSilent(silence, sinceMs)) {
        const peers = new Set(heard.filter((group) => group.includes(replica)).flat());
        const silentMs = asOfMs - (toSilentSince(silence) ?? asOfMs);
        const isSpared = sparesUsual && !this.#usual.isUnusual(peers, silentMs);
        if (peers.size > 0 && !isSpared) this.#freeze(replica, silence);
      }
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
    const { table, silences, decisions } = this.#collaborators;
    const frozenAtMs = this.#frozenAtMs.get(replica) ?? 0;
    if (heardMs === null || heardMs <= frozenAtMs) return;
    silences.judgeFrom(replica.slot, silences.nowMs());
    table.clearFailing(replica.slot, 'frozen');
    decisions.note({ replica: replica.name, judge: 'frozen', verdict: 'ok', forMs: 0 });
  }
}

function toBound(frozenAfterMs: FrozenSettings['frozenAfterMs']): SilenceBound | null {
  if (frozenAfterMs === 'auto') return AUTO_BOUND;
  return frozenAfterMs === null ? null : { frozenAfterMs, sparesUsual: false };
}

function wasHeard(silence: Silence | undefined, sinceMs: number): boolean {
  return silence !== undefined && silence.heardMs !== null && silence.heardMs > sinceMs;
}

function isSilent(silence: Silence, sinceMs: number): boolean {
  const { waitingSinceMs } = silence;
  return waitingSinceMs !== null && waitingSinceMs <= sinceMs && !wasHeard(silence, sinceMs);
}
