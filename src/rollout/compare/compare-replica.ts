import { setTimeout as sleep } from 'node:timers/promises';
import { RefusedError, UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import type { GatewayFinding, RolloutGateways } from '../gateways/gateways.ts';
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

/** What one look has found. */
interface Seen {
  readonly own: ReplicaView;
  /** What the gateways say; null: there is nothing to compare it with, or they are not asked. */
  readonly finding: GatewayFinding | null;
}

const LOOK_EVERY_MS = 1_000;

/** How long nothing may be known of the replica, for example while its gateway restarts. */
const BLIND_MS = 120_000;

/** More peers tell hardly more. */
const MAX_PEERS = 32;

/**
 * Asks the gateways through the ramp and after it whether a replica is as good as its peers, until there is a verdict.
 * Throws a RolloutStop if somebody drains the replica meanwhile, or the signal aborts.
 */
export async function compareReplica(task: ComparisonTask): Promise<ComparisonEnd> {
  const { signal, onLook, onRampEnd } = task;
  const look = createLook(task);
  let rampEndedMs: number | null = null;
  let seenMs = performance.now();
  for (;;) {
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    const seen = signal.aborted ? null : await look();
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
    const { finding } = seen;
    const { share, inflight } = seen.own;
    if (share === 1 && rampEndedMs === null) {
      rampEndedMs = nowMs;
      onRampEnd();
    }
    const figures = finding?.figures ?? {};
    const end = decideEnd(finding, rampEndedMs === null ? null : nowMs - rampEndedMs, task);
    if (end !== null) return { ...end, figures };
    const all = { share, inflight, ...figures };
    if (rampEndedMs === null) {
      onLook('ramp', `${Math.round(share * 100)} % of its turns, ${inflight} in flight`, all);
    } else onLook('compare', `${toOneLine(finding?.summary ?? '')}, ${inflight} in flight`, all);
  }
}

/** Creates what asks the gateways; it returns null while they do not answer. The peers are those of the first look. */
function createLook(task: ComparisonTask): () => Promise<Seen | null> {
  const { name, gateways, isUnderWay, isJudged, falseAlarm } = task;
  let peers: readonly string[] | null = null;
  return async () => {
    try {
      const replicas = await gateways.replicas();
      const own = replicas.find((replica) => replica.name === name);
      // Behind a DNS name it may be away for a moment.
      if (own === undefined) return null;
      if (own.isDrained) throw new RolloutStop('failed', 'was drained by somebody else');
      peers ??= replicas
        .filter((each) => each.name !== name && !each.isDrained && !isUnderWay(each.name))
        .filter((each) => !each.isShadow && shareModel(each, own))
        .map((each) => each.name)
        .slice(0, MAX_PEERS);
      // A gateway compares with none that a reload has removed, or that has become a shadow meanwhile.
      const present = peers.filter((peer) => replicas.some((each) => each.name === peer && !each.isShadow));
      if (!isJudged || present.length === 0) return { own, finding: null };
      return { own, finding: await gateways.judge(name, present, falseAlarm) };
    } catch (error) {
      const isGone = error instanceof RefusedError && error.code === 'replica_not_found';
      if (error instanceof UnreachableError || isGone) return null;
      throw error;
    }
  };
}

/** Null: there is no verdict yet. `sinceRampMs`: how long the ramp has been over; null: it is still on. */
function decideEnd(
  finding: GatewayFinding | null,
  sinceRampMs: number | null,
  { isJudged, timeoutMs }: ComparisonTask,
): Omit<ComparisonEnd, 'figures'> | null {
  if (finding !== null && finding.verdict !== 'undecided') {
    return { kind: finding.verdict, sentence: toOneLine(finding.sentence) };
  }
  if (sinceRampMs === null) return null;
  if (!isJudged) return { kind: 'good', sentence: 'serves; it was not compared' };
  if (finding === null) return { kind: 'undecided', sentence: 'has no peer to be compared with' };
  if (sinceRampMs < timeoutMs) return null;
  return { kind: 'undecided', sentence: toOneLine(finding.sentence) };
}
