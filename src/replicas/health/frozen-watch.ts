import type { HealthSettings } from '#replicas/health-state';
import type { RegisteredReplica } from '#replicas/registry';
import { groupByModel } from '#replicas/routing';
import { type Silence, toSampleMs } from '#replicas/silence';
import { PartialFreezes, type PartialFreezesCollaborators } from './partial-freezes.ts';

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

/** How many times as long as the longest silence that has ended by itself a silence must be, not to be usual. */
const TIMES_AS_LONG = 3;
/**
 * How many times the length of a silence replicas must have been watched while requests waited, before a longer one than
 * ever counts. Above the cap the same is enough for any length.
 */
const TIMES_WATCHED = 100;
const WATCHED_CAP_MS = 60_000;
/** What happened is known for one to two of these. */
const MEMORY_MS = 24 * 3_600_000;

/** Between two looks that are further apart, this machine or a worker stood still. The silence was not the replica's. */
const STOOD_STILL_MS = 5_000;

/** What one replica has shown. */
interface Usual {
  /** The longest silence that a byte has ended. */
  longestMs: number;
  /** How long it was watched while a request waited on it. */
  watchedMs: number;
}

/**
 * How long replicas are silent although nothing is wrong: long prompts, answers in one piece, and calls of tools that the
 * engine parses first. Learnt from the silences that ended with a byte. `npm run lab -- measure/frozen` shows what follows.
 */
class UsualSilences {
  #recent = new WeakMap<RegisteredReplica, Usual>();
  #former = new WeakMap<RegisteredReplica, Usual>();
  #recentSinceMs: number | null = null;
  /** Since when the replicas that a request waits on were silent, at the last look. */
  #silentSinceMs = new Map<RegisteredReplica, number>();
  #lookedMs = 0;

  /** Looks at the replicas that are not drained. */
  look(seen: ReadonlyMap<RegisteredReplica, Silence>, nowMs: number): void {
    this.#forget(nowMs);
    const sinceLookMs = nowMs - this.#lookedMs;
    const before = sinceLookMs > STOOD_STILL_MS ? new Map<RegisteredReplica, number>() : this.#silentSinceMs;
    this.#silentSinceMs = new Map();
    this.#lookedMs = nowMs;
    for (const [replica, silence] of seen) {
      const sinceMs = toSilentSince(silence);
      if (sinceMs !== null) this.#silentSinceMs.set(replica, sinceMs);
      const beforeMs = before.get(replica);
      if (beforeMs === undefined) continue;
      const usual = this.#usualOf(replica);
      usual.watchedMs += sinceLookMs;
      const { heardMs } = silence;
      if (heardMs !== null && heardMs > beforeMs)
        usual.longestMs = Math.max(usual.longestMs, heardMs - beforeMs);
    }
  }

  /** Whether a silence of this length would be a new thing for these replicas, which have been watched for long enough. */
  isUnusual(replicas: Iterable<RegisteredReplica>, silentMs: number): boolean {
    let longestMs = 0;
    let watchedMs = 0;
    for (const replica of replicas) {
      for (const usual of [this.#recent.get(replica), this.#former.get(replica)]) {
        if (usual === undefined) continue;
        longestMs = Math.max(longestMs, usual.longestMs);
        watchedMs += usual.watchedMs;
      }
    }
    const isWatched = watchedMs >= TIMES_WATCHED * Math.min(silentMs, WATCHED_CAP_MS);
    return isWatched && silentMs >= TIMES_AS_LONG * longestMs;
  }

  #usualOf(replica: RegisteredReplica): Usual {
    const known = this.#recent.get(replica);
    if (known !== undefined) return known;
    const usual: Usual = { longestMs: 0, watchedMs: 0 };
    this.#recent.set(replica, usual);
    return usual;
  }

  #forget(nowMs: number): void {
    this.#recentSinceMs ??= nowMs;
    if (nowMs - this.#recentSinceMs < MEMORY_MS) return;
    this.#former = this.#recent;
    this.#recent = new WeakMap();
    this.#recentSinceMs = nowMs;
  }
}

/** Since when the replica has been silent while a request waits on it; null: none waits. */
function toSilentSince({ heardMs, waitingSinceMs }: Silence): number | null {
  return waitingSinceMs === null ? null : Math.max(heardMs ?? 0, waitingSinceMs);
}
