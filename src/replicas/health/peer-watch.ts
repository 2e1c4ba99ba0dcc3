import type { HealthJudge, HealthVerdict } from '#replicas/health-state';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import type { SharedState } from '#replicas/shared';
import { ReplicaWatch } from '#verdict';
import { type Block, isFull, MIN_BLOCK_MS, MIN_REQUESTS, type Observation } from '#verdict/blocks';
import type { HealthDecisions } from './health-decisions.ts';
import { PeerBlocks } from './peer-blocks.ts';
import { canBeSpared, PeerFinder } from './peers.ts';

/** How replicas are compared with their peers: `health.peers` of the configuration. */
export interface PeerSettings {
  /** How much slower than its peers a replica may be: 0.05 for 5 %. */
  readonly toleranceShare: number;
  /** The share of the replicas of a model that may fail, be drained or be on a ramp when one more is tried last. */
  readonly maxFailingShare: number;
  readonly coolDownMs: number;
  /** How long the share of turns grows after that. */
  readonly rampMs: number;
}

export interface PeerWatchCollaborators {
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly shared: Pick<SharedState, 'health' | 'ramps'>;
  readonly decisions: Pick<HealthDecisions, 'note'>;
  /** The routing policy in effect. */
  readonly policy: () => string;
  /** Called with whether requests are to be passed to `observe`. */
  readonly onSwitch: (isOn: boolean) => void;
}

/** Found bad: tried last until then. */
interface Out {
  readonly judge: HealthJudge;
  readonly untilMs: number;
}

/** What is known of one replica. */
interface Watched {
  /** The version of its drain state: a drain or an undrain forgets the rest. */
  readonly version: string;
  watch: ReplicaWatch;
  /** When its block began. */
  sinceMs: number;
  /** When it was last seen to fail, or else when it was first seen. What began before says nothing of it now. */
  wellSinceMs: number;
  /** Since when the evidence has not been small. */
  beganMs: number;
  /** Null: it takes its turns. */
  out: Out | null;
  /** The judge that found it bad, and until when it is on probation; null: it is not. */
  probation: Out | null;
  /** How often it was found bad, each time soon after the time before. */
  timesOut: number;
  backAtMs: number;
  /** When it was last found bad and kept. */
  keptAtMs: number;
}

/** How often the blocks are looked at. Those of different replicas are full at different looks. */
const LOOK_EVERY_MS = 250;

/** A block that is not full by then begins anew. */
const MAX_BLOCK_MS = 300_000;

/** The longest cool-down, as a multiple of the first. */
const MAX_FACTOR = 16;

/** A replica that is found bad within so many cool-downs after it got turns again was never well. */
const SOON_COOL_DOWNS = 10;

/**
 * Compares the requests of each replica with like requests of its peers. One that fails more of them, or is slower, is
 * tried last; after a cool-down it gets a growing share of its turns, and is judged again.
 */
export class PeerWatch {
  readonly #collaborators: PeerWatchCollaborators;
  readonly #blocks = new PeerBlocks();
  readonly #peers = new PeerFinder();
  #watched = new WeakMap<RegisteredReplica, Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: PeerWatchCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Compares from now on, and forgets what it knew; with null, not any more. */
  start(settings: PeerSettings | null): void {
    this.stop();
    this.#watched = new WeakMap();
    this.#blocks.clear();
    this.#collaborators.onSwitch(settings !== null);
    if (settings === null) return;
    this.#timer = setInterval(() => this.look(settings), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Takes the facts of a request that has ended. `hasHung`: a time-out ended it, and it hung all the time. */
  observe(observation: Observation, hasHung = false): void {
    const nowMs = this.#nowMs();
    const isOver = hasHung && this.#isOver(observation.replica, nowMs - observation.e2eMs);
    this.#blocks.add(isOver ? { ...observation, outcome: 'unclear' } : observation, nowMs);
  }

  /** Whether what a replica did then does not count any more. */
  #isOver(name: string, beganMs: number): boolean {
    const replica = this.#collaborators.registry.replicas.find((each) => each.name === name);
    const watched = replica === undefined ? undefined : this.#watched.get(replica);
    return watched !== undefined && beganMs < watched.wellSinceMs;
  }

  /** Judges the replicas whose blocks are full, and gives turns again to those whose cool-down is over. */
  look(settings: PeerSettings): void {
    const { replicas } = this.#collaborators.registry;
    const nowMs = this.#nowMs();
    let oldestMs = nowMs;
    for (const [index, replica] of replicas.entries()) {
      // Its requests do not count, or no client's are its, and it may be another one when it comes back.
      if (replica.drain.drained || replica.shadow !== null) {
        this.#watched.delete(replica);
        continue;
      }
      const watched = this.#watchedOf(replica, index);
      if (watched.out !== null) this.#lookOut(replica, watched, watched.out, settings);
      else if (replica.health?.state === 'failing') [watched.sinceMs, watched.wellSinceMs] = [nowMs, nowMs];
      else if (nowMs - watched.sinceMs >= MIN_BLOCK_MS) this.#judge(replica, index, watched, settings);
      oldestMs = Math.min(oldestMs, watched.sinceMs);
    }
    this.#blocks.forgetBefore(oldestMs);
  }

  #watchedOf(replica: RegisteredReplica, index: number): Watched {
    const { health } = this.#collaborators.shared;
    const known = this.#watched.get(replica);
    const wasReset = known?.out != null && !health.isFailingBy(replica.slot, known.out.judge);
    if (known !== undefined && known.version === replica.drain.version && !wasReset) return known;
    const nowMs = this.#nowMs();
    const watched: Watched = {
      version: replica.drain.version,
      wellSinceMs: nowMs,
      watch: new ReplicaWatch({ isProbation: false }),
      beganMs: nowMs,
      // One replica after another, so that no look judges all of them.
      sinceMs: nowMs + (index % (MIN_BLOCK_MS / LOOK_EVERY_MS)) * LOOK_EVERY_MS,
      out: null,
      probation: null,
      timesOut: 0,
      backAtMs: Number.NEGATIVE_INFINITY,
      keptAtMs: Number.NEGATIVE_INFINITY,
    };
    this.#watched.set(replica, watched);
    return watched;
  }

  #judge(replica: RegisteredReplica, index: number, watched: Watched, settings: PeerSettings): void {
    const { registry, policy } = this.#collaborators;
    const nowMs = this.#nowMs();
    const block = this.#blockOf(replica.name, index, watched.sinceMs);
    if (block === null) {
      if (nowMs - watched.sinceMs >= MAX_BLOCK_MS) watched.sinceMs = nowMs;
      return;
    }
    // With prefix_affinity, its prompts are its own. After an undrain with a ramp it may be cold.
    const isWarming = replica.ramp !== null && watched.probation === null;
    const comparesTimes = policy() !== 'prefix_affinity' && !isWarming;
    watched.watch.add(block, { tolerance: 1 + settings.toleranceShare, comparesTimes });
    // The figures have begun with this block.
    if (watched.watch.requests === block.own.length) watched.beganMs = watched.sinceMs;
    watched.sinceMs = nowMs;
    const wrong = watched.watch.findWrong();
    if (wrong.length === 0) {
      this.#endProbation(replica, watched);
      return;
    }
    const judge = wrong.includes('errors') ? 'errors' : 'slow';
    const reason = `${watched.watch.explain(wrong)} (${watched.watch.requests.toLocaleString('en')} requests)`;
    if (canBeSpared(replica, registry.replicas, settings.maxFailingShare)) {
      this.#takeOut(replica, watched, { judge, reason, coolDownMs: settings.coolDownMs });
      return;
    }
    // It may be well by the time at which others serve again.
    watched.watch = new ReplicaWatch({ isProbation: true });
    if (nowMs - watched.keptAtMs < settings.coolDownMs) return;
    watched.keptAtMs = nowMs;
    this.#decide(replica, judge, 'kept', { forMs: nowMs - watched.beganMs, reason });
  }

  /** Null: it is not full yet. */
  #blockOf(replica: string, index: number, sinceMs: number): Block | null {
    if (!this.#blocks.hasEnded(replica, MIN_REQUESTS, sinceMs)) return null;
    const peers = this.#peers.peersAt(index, this.#collaborators.registry.replicas);
    const block = this.#blocks.blockOf(replica, peers, sinceMs);
    const size = { spanMs: this.#nowMs() - sinceMs, own: block.own.length, peers: block.peers.length };
    return isFull(size) ? block : null;
  }

  #takeOut(
    replica: RegisteredReplica,
    watched: Watched,
    { judge, reason, coolDownMs }: { judge: HealthJudge; reason: string; coolDownMs: number },
  ): void {
    const nowMs = this.#nowMs();
    const isSoon = nowMs - watched.backAtMs < SOON_COOL_DOWNS * coolDownMs;
    watched.timesOut = isSoon ? watched.timesOut + 1 : 1;
    const factor = Math.min(MAX_FACTOR, 2 ** (watched.timesOut - 1));
    watched.out = { judge, untilMs: nowMs + factor * coolDownMs };
    watched.probation = null;
    this.#collaborators.shared.health.markFailing(replica.slot, judge);
    this.#decide(replica, judge, 'failing', { forMs: nowMs - watched.beganMs, reason });
  }

  /** Gives turns again when the cool-down is over. */
  #lookOut(
    replica: RegisteredReplica,
    watched: Watched,
    { judge, untilMs }: Out,
    settings: PeerSettings,
  ): void {
    const { health, ramps } = this.#collaborators.shared;
    const nowMs = this.#nowMs();
    watched.sinceMs = nowMs;
    watched.wellSinceMs = nowMs;
    if (nowMs < untilMs) return;
    this.#watched.set(replica, {
      ...watched,
      watch: new ReplicaWatch({ isProbation: true }),
      beganMs: nowMs,
      backAtMs: nowMs,
      out: null,
      probation: { judge, untilMs: nowMs + settings.rampMs + settings.coolDownMs },
    });
    // Before the flag, so that no thread gives it a turn too many.
    ramps.set(replica.slot, settings.rampMs === 0 ? null : { beganMs: nowMs, durationMs: settings.rampMs });
    health.clearFailing(replica.slot, judge);
    this.#decide(replica, judge, 'probation', { forMs: 0 });
  }

  #endProbation(replica: RegisteredReplica, watched: Watched): void {
    const { probation } = watched;
    if (probation === null || this.#nowMs() < probation.untilMs) return;
    watched.probation = null;
    this.#decide(replica, probation.judge, 'ok', { forMs: 0 });
  }

  #decide(
    { name: replica }: RegisteredReplica,
    judge: HealthJudge,
    verdict: HealthVerdict,
    details: { readonly forMs: number; readonly reason?: string },
  ): void {
    const forMs = Math.round(details.forMs);
    this.#collaborators.decisions.note({ replica, judge, verdict, ...details, forMs });
  }

  #nowMs(): number {
    return this.#collaborators.shared.ramps.nowMs();
  }
}
