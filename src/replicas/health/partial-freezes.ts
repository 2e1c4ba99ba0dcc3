import type { HealthTable, HealthVerdict } from '#replicas/health-state';
import type { RampTable } from '#replicas/ramps';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import type { SilenceTable, Streams } from '#replicas/silence';
import type { HealthDecisions } from './health-decisions.ts';
import { canBeSpared, PeerFinder } from './peers.ts';

/** How long a replica is tried last, and how many may be. */
export interface PartialFreezeSettings {
  readonly coolDownMs: number;
  /** The share of the replicas of a model that may fail, be drained or be on a ramp when one more is tried last. */
  readonly maxFailingShare: number;
}

export interface PartialFreezesCollaborators {
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly table: HealthTable;
  readonly silences: SilenceTable;
  readonly ramps: RampTable;
  readonly decisions: Pick<HealthDecisions, 'note'>;
}

/** What is known of one replica. */
interface Suspect {
  /** The version of its drain state: a drain or an undrain forgets the rest. */
  readonly version: string;
  /** How many of its streams were stuck, on average of the last minutes. */
  usualStuck: number;
  /** For how long it was watched. */
  watchedMs: number;
  /** How many looks in a row have found it bad. */
  looks: number;
  /** Until when it is tried last; null: it takes its turns. */
  outUntilMs: number | null;
  /** Until when it is judged by fewer streams, since it was found bad before; null: it is not. */
  probationUntilMs: number | null;
  /** How often it was found bad, each time on probation. */
  timesOut: number;
  /** When it was last found bad and kept. */
  keptAtMs: number;
}

/** A stream that fell silent by chance when the workers looked is not found by two looks. */
const MIN_LOOKS = 2;

/** What is over does not count: the last of the stuck streams fell silent at most this long ago, by its limit. */
const MAX_AGE_MS = 5_000;

/** How many streams are usually stuck is an average over about this time. */
const MEMORY_MS = 600_000;

/** The longest cool-down, as a multiple of the first. */
const MAX_FACTOR = 4;

/**
 * Finds replicas of whose streams more are stuck than of those of their peers: silent, while the replica sends something
 * to others. Such a one is tried last. After a cool-down it gets a growing share of its turns, and is judged again, by
 * streams that fall silent from then on.
 */
export class PartialFreezes {
  readonly #collaborators: PartialFreezesCollaborators;
  readonly #peers = new PeerFinder();
  #suspects = new WeakMap<RegisteredReplica, Suspect>();
  /** Up to when workers had sampled at the last check. */
  #checkedMs: number | null = null;

  constructor(collaborators: PartialFreezesCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Forgets what it knew. */
  clear(): void {
    this.#suspects = new WeakMap();
    this.#checkedMs = null;
  }

  /** Whether a replica is tried last because of it. */
  isOut(replica: RegisteredReplica): boolean {
    return this.#suspects.get(replica)?.outUntilMs != null;
  }

  /** Judges all replicas that take their turns, and gives turns again to those whose cool-down is over. */
  check(settings: PartialFreezeSettings): void {
    const { registry, table, silences } = this.#collaborators;
    const { replicas } = registry;
    // A worker whose thread stalls has not read what replicas have sent since.
    const asOfMs = silences.oldestSampleMs;
    if (asOfMs === null) return;
    const sinceCheckMs = asOfMs - (this.#checkedMs ?? asOfMs);
    this.#checkedMs = asOfMs;
    const seen = new Map(replicas.map((replica) => [replica.name, silences.streamsOf(replica.slot)]));
    for (const [index, replica] of replicas.entries()) {
      if (replica.drain.drained) continue;
      const suspect = this.#suspectOf(replica);
      if (suspect.outUntilMs !== null) {
        this.#endCoolDown(replica, suspect, settings);
        continue;
      }
      const own = seen.get(replica.name);
      noteUsual(suspect, own?.stuck ?? 0, sinceCheckMs);
      const isJudged = own !== undefined && own.stuck > 0 && !table.isFailingBy(replica.slot, 'frozen');
      const peers = isJudged ? this.#peersOf(index, replicas, seen, asOfMs) : [];
      const isBad =
        isJudged && isRecent(own, asOfMs) && isClearlyMore(own, peers, suspect.probationUntilMs !== null);
      suspect.looks = isBad ? suspect.looks + 1 : 0;
      if (isBad && suspect.looks >= MIN_LOOKS) this.#find(replica, suspect, own, settings);
      else if (!isBad) this.#endProbation(replica, suspect);
    }
  }

  #suspectOf(replica: RegisteredReplica): Suspect {
    const { table, silences } = this.#collaborators;
    const known = this.#suspects.get(replica);
    const wasReset = known?.outUntilMs != null && !table.isFailingBy(replica.slot, 'frozen');
    if (known !== undefined && known.version === replica.drain.version && !wasReset) return known;
    const suspect: Suspect = {
      version: replica.drain.version,
      usualStuck: 0,
      watchedMs: 0,
      looks: 0,
      outUntilMs: null,
      probationUntilMs: null,
      timesOut: 0,
      keptAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#suspects.set(replica, suspect);
    silences.judgeFrom(replica.slot, silences.nowMs());
    return suspect;
  }

  /** The streams of its peers that have sent something lately. */
  #peersOf(
    index: number,
    replicas: readonly RegisteredReplica[],
    seen: ReadonlyMap<string, Streams>,
    asOfMs: number,
  ): readonly PeerStreams[] {
    const { silences } = this.#collaborators;
    const names = new Set(this.#peers.peersAt(index, replicas));
    return replicas.flatMap((replica) => {
      const streams = seen.get(replica.name);
      const heardMs = names.has(replica.name) ? silences.heardOf(replica.slot) : null;
      if (streams === undefined || heardMs === null || heardMs < asOfMs - MAX_AGE_MS) return [];
      return [{ ...streams, usualStuck: this.#suspectOf(replica).usualStuck }];
    });
  }

  #find(replica: RegisteredReplica, suspect: Suspect, own: Streams, settings: PartialFreezeSettings): void {
    const { registry, table, silences } = this.#collaborators;
    const nowMs = silences.nowMs();
    const details = {
      forMs: Math.round(nowMs - (own.oldestMs ?? nowMs)),
      reason: `${own.stuck} of ${own.running} streams are silent`,
    };
    suspect.looks = 0;
    if (!canBeSpared(replica, registry.replicas, settings.maxFailingShare)) {
      if (nowMs - suspect.keptAtMs < settings.coolDownMs) return;
      suspect.keptAtMs = nowMs;
      this.#decide(replica, 'kept', details);
      return;
    }
    suspect.timesOut = suspect.probationUntilMs === null ? 1 : suspect.timesOut + 1;
    const factor = Math.min(MAX_FACTOR, 2 ** (suspect.timesOut - 1));
    suspect.outUntilMs = nowMs + factor * settings.coolDownMs;
    suspect.probationUntilMs = null;
    table.noteFrozen(replica.slot);
    this.#decide(replica, 'failing', details);
  }

  #endCoolDown(replica: RegisteredReplica, suspect: Suspect, { coolDownMs }: PartialFreezeSettings): void {
    const { table, silences, ramps } = this.#collaborators;
    const nowMs = silences.nowMs();
    if (suspect.outUntilMs === null || nowMs < suspect.outUntilMs) return;
    suspect.outUntilMs = null;
    suspect.probationUntilMs = nowMs + 3 * coolDownMs;
    silences.judgeFrom(replica.slot, nowMs);
    // Before the flag, so that no thread gives it a turn too many.
    ramps.set(replica.slot, { beganMs: nowMs, durationMs: coolDownMs });
    table.clearFailing(replica.slot, 'frozen');
    this.#decide(replica, 'probation', { forMs: 0 });
  }

  #endProbation(replica: RegisteredReplica, suspect: Suspect): void {
    const { probationUntilMs } = suspect;
    if (probationUntilMs === null || this.#collaborators.silences.nowMs() < probationUntilMs) return;
    suspect.probationUntilMs = null;
    this.#decide(replica, 'ok', { forMs: 0 });
  }

  #decide(
    { name: replica }: RegisteredReplica,
    verdict: HealthVerdict,
    details: { readonly forMs: number; readonly reason?: string },
  ): void {
    this.#collaborators.decisions.note({ replica, judge: 'frozen', verdict, ...details });
  }
}

/** After some more time in which so many of its streams were stuck. */
function noteUsual(suspect: Suspect, stuck: number, ms: number): void {
  suspect.watchedMs += ms;
  const share = suspect.watchedMs === 0 ? 0 : ms / Math.min(suspect.watchedMs, MEMORY_MS);
  suspect.usualStuck += (stuck - suspect.usualStuck) * Math.min(1, share);
}

function isRecent({ newestMs }: Streams, asOfMs: number): boolean {
  return newestMs !== null && newestMs >= asOfMs - MAX_AGE_MS;
}

/** The streams of a peer, and how many of them are stuck on average. */
interface PeerStreams extends Pick<Streams, 'stuck' | 'running'> {
  readonly usualStuck: number;
}

/** Fewer say nothing: one engine may think for long about one request. */
const MIN_STUCK = 4;
/** The same of a replica that was found bad a moment ago. */
const MIN_STUCK_AGAIN = 2;

/** What every replica may have: this share of its streams, and twice that of its peers. */
const MIN_SHARE = 0.05;
const SHARE_FACTOR = 2;

/** How far above the mean of its peers, in standard deviations of numbers by chance, and beyond these: calls of tools come in bunches. */
const DEVIATIONS = 8;

/**
 * Whether more streams of a replica are stuck than chance explains, if it were like its peers now or in the minutes
 * before. Never without peers. By turns each gets as many streams, so their numbers are compared, and their shares where
 * it has more.
 */
export function isClearlyMore(own: Streams, peers: readonly PeerStreams[], isAgain: boolean): boolean {
  if (peers.length === 0) return false;
  const minStuck = isAgain ? MIN_STUCK_AGAIN : MIN_STUCK;
  const stuck = peers.reduce((sum, each) => sum + each.stuck, 0);
  const running = peers.reduce((sum, each) => sum + each.running, 0);
  const usual = peers.reduce((sum, each) => sum + each.usualStuck, 0);
  const mean = Math.max(stuck, usual) / peers.length;
  const share = running === 0 ? 0 : stuck / running;
  return (
    own.stuck >= minStuck &&
    own.stuck >= mean + DEVIATIONS * Math.sqrt(mean) + minStuck - 1 &&
    own.stuck / Math.max(1, own.running) >= MIN_SHARE + SHARE_FACTOR * share
  );
}
