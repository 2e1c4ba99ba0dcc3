import { setTimeout as sleep } from 'node:timers/promises';
import { UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import { ReplicaComparison } from '#verdict';
import type { Followed } from '../gateways/follow-requests.ts';
import type { RolloutGateways } from '../gateways/gateways.ts';
import { type ReplicaView, shareModel } from '../gateways/replica-view.ts';
import type { Figures } from '../report/reporter.ts';
import { RolloutStop } from '../stop.ts';

/** How a comparison ended. */
export interface ComparisonEnd {
  readonly kind: 'good' | 'bad' | 'undecided';
  /** One line that follows the replica's name. */
  readonly sentence: string;
  /** Of the comparison, by the names that the admin API has for them. */
  readonly figures: Figures;
}

/** What a comparison works with. */
export interface ComparisonTask {
  readonly name: string;
  readonly gateways: RolloutGateways;
  /** The requests since the look before. */
  readonly look: () => Promise<Followed>;
  /** Whether a replica is under way in this rollout too, and so is no peer. */
  readonly isUnderWay: (name: string) => boolean;
  /** The probability of a false alarm. */
  readonly falseAlarm: number;
  /** How long it may take after the ramp. */
  readonly timeoutMs: number;
  /** Without it, only the ramp is awaited. */
  readonly isJudged: boolean;
  readonly signal: AbortSignal;
  /** Called after each look, with the figures in words and in numbers. */
  readonly onLook: (phase: 'ramp' | 'compare', text: string, figures: Figures) => void;
  readonly onRampEnd: () => void;
}

/** What is known after some looks, besides the comparison. */
interface Progress {
  /** Null: the ramp is still on. */
  readonly rampEndedMs: number | null;
  /** Looks in a row that found it away. */
  readonly awayCount: number;
  /** Looks in a row that found it failing by `health`. */
  readonly failingCount: number;
}

/** What one look has found. */
interface Seen extends Followed {
  readonly own: ReplicaView;
  readonly peers: readonly ReplicaView[];
}

const LOOK_EVERY_MS = 1_000;

/** A replica that its gateway cannot reach, or finds failing, at so many looks in a row is bad. */
const MAX_AWAY = 5;

/** How long nothing may be known of the replica, for example while its gateway restarts. */
const BLIND_MS = 120_000;

/**
 * Follows the requests of a replica and its peers through the ramp and after it, until there is a verdict. Throws a
 * RolloutStop if somebody drains the replica meanwhile, or the signal aborts.
 */
export async function compareReplica(task: ComparisonTask): Promise<ComparisonEnd> {
  const { name, signal, onLook, onRampEnd } = task;
  const startMs = performance.now();
  const comparison = new ReplicaComparison(name, startMs);
  let progress: Progress = { rampEndedMs: null, awayCount: 0, failingCount: 0 };
  let seenMs = startMs;
  for (;;) {
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    const seen = signal.aborted ? null : await lookAt(task);
    if (signal.aborted) throw new RolloutStop('interrupted', 'serves; its comparison was interrupted');
    const nowMs = performance.now();
    if (seen === null) {
      if (nowMs - seenMs < BLIND_MS) continue;
      throw new RolloutStop(
        'failed',
        'was undrained; its gateway does not answer, or does not have it any more',
      );
    }
    seenMs = nowMs;
    const next = advance(progress, seen, nowMs);
    const hasRampEnded = progress.rampEndedMs === null && next.rampEndedMs !== null;
    if (hasRampEnded) comparison.endRamp(nowMs);
    compareSeen(comparison, seen, nowMs);
    if (hasRampEnded) onRampEnd();
    progress = next;
    const end = decideEnd(comparison, progress, seen, nowMs, task);
    if (end !== null) return { ...end, figures: comparison.toFigures() };
    const { share, inflight } = seen.own;
    const figures = { share, inflight, ...comparison.toFigures() };
    if (progress.rampEndedMs === null) {
      onLook('ramp', `${Math.round(share * 100)} % of its turns, ${inflight} in flight`, figures);
    } else onLook('compare', `${comparison.toText()}, ${inflight} in flight`, figures);
  }
}

/** What the gateways say now; null if they do not answer. */
async function lookAt({ name, gateways, look, isUnderWay }: ComparisonTask): Promise<Seen | null> {
  try {
    const followed = await look();
    const replicas = await gateways.replicas();
    const own = replicas.find((replica) => replica.name === name);
    // Behind a DNS name it may be away for a moment.
    if (own === undefined) return null;
    if (own.isDrained) throw new RolloutStop('failed', 'was drained by somebody else');
    const peers = replicas.filter(
      (each) => each.name !== name && !each.isDrained && !isUnderWay(each.name) && shareModel(each, own),
    );
    return { ...followed, own, peers };
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    throw error;
  }
}

function advance(before: Progress, { own }: Seen, nowMs: number): Progress {
  const hasRampEnded = own.share === 1 && before.rampEndedMs === null;
  return {
    rampEndedMs: hasRampEnded ? nowMs : before.rampEndedMs,
    awayCount: own.isAway ? before.awayCount + 1 : 0,
    failingCount: own.failingBy.length > 0 ? before.failingCount + 1 : 0,
  };
}

function compareSeen(comparison: ReplicaComparison, { own, peers, observations }: Seen, nowMs: number): void {
  const names = new Set(peers.map(({ name }) => name));
  comparison.look({ nowMs, observations, peers: names, share: own.share });
}

/** Null: there is no verdict yet. */
function decideEnd(
  comparison: ReplicaComparison,
  { rampEndedMs, awayCount, failingCount }: Progress,
  { own, peers, policy }: Seen,
  nowMs: number,
  { isJudged, falseAlarm, timeoutMs }: ComparisonTask,
): Omit<ComparisonEnd, 'figures'> | null {
  if (!isJudged)
    return rampEndedMs === null ? null : { kind: 'good', sentence: 'serves; it was not compared' };
  if (awayCount >= MAX_AWAY) return { kind: 'bad', sentence: 'does not answer any more' };
  if (failingCount >= MAX_AWAY) {
    const why = toOneLine(own.failingBy.join(', '));
    const sentence = `is failing by the gateway's health checks (${why}), with ${own.inflight} requests in flight`;
    return { kind: 'bad', sentence };
  }
  if (comparison.isSilent(own.inflight, nowMs)) {
    const sentence = `is silent: ${own.inflight} requests in flight, and none ends while those of its peers do`;
    return { kind: 'bad', sentence };
  }
  // With prefix_affinity a replica gets other prompts than its peers.
  const judgement = comparison.judge({ falseAlarm, sharesPrompts: policy !== 'prefix_affinity' });
  const { kind } = judgement;
  if (kind === 'bad') {
    const sentence = `is worse than its peers: ${comparison.explain(judgement)} (${comparison.requests} requests)`;
    return { kind, sentence };
  }
  if (rampEndedMs === null) return null;
  if (peers.length === 0) return { kind: 'undecided', sentence: 'has no peer to be compared with' };
  if (kind === 'good') return { kind, sentence: `is as good as its peers: ${comparison.toText()}` };
  if (nowMs - rampEndedMs < timeoutMs) return null;
  return { kind: 'undecided', sentence: `cannot be judged: ${comparison.toText()}` };
}
