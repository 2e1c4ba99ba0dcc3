import { type RolloutFacts, toMark } from '#rollout-board/facts';
import {
  decideReport,
  hasVanished,
  isLive,
  isOver,
  isWorthKeeping,
  type KnownRollout,
  mergeFacts,
  type ReportDecision,
} from './rules.ts';

/** What people can ask of a rollout. */
export type AskKind = RolloutFacts['ask']['kind'];

/** What became of a report. `isComplete`: every replica of the rollout is known. */
export type ReportOutcome =
  | { readonly kind: 'taken'; readonly rollout: KnownRollout; readonly isComplete: boolean }
  | Exclude<ReportDecision, { readonly kind: 'take' }>;

/** What a board works with. */
export interface BoardCollaborators {
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number;
}

/** What hears of a change. `news`: the facts that have come, with the replicas alone that have changed. */
export interface BoardListener {
  onNews(news: KnownRollout): void;
  /** What a restart should know has changed. */
  onWorthKeeping(): void;
}

/** The most rollouts that are known. The oldest that is not under way makes room. */
const MAX_KNOWN = 50;

/**
 * The rollouts that a gateway knows. Who drives one tells how it is; anybody may ask it to pause, go on or abort, and the
 * driver learns that with its next report. The gateway itself carries out nothing.
 */
export class RolloutBoard {
  readonly #nowMs: () => number;
  readonly #epochMs: () => number;
  readonly #known = new Map<string, KnownRollout>();
  readonly #listeners: BoardListener[] = [];

  constructor({ nowMs = () => performance.now(), epochMs = Date.now }: BoardCollaborators = {}) {
    this.#nowMs = nowMs;
    this.#epochMs = epochMs;
  }

  /** The rollouts, the newest first. */
  get rollouts(): readonly KnownRollout[] {
    return [...this.#known.values()].toSorted((a, b) => compareStarts(b, a));
  }

  find(id: string): KnownRollout | null {
    return this.#known.get(id) ?? null;
  }

  listen(listener: BoardListener): void {
    this.#listeners.push(listener);
  }

  /** Takes what a driver tells. `tokenName`: whose token it has. */
  report(report: RolloutFacts, tokenName: string | null): ReportOutcome {
    const nowMs = this.#nowMs();
    const known = this.find(report.id);
    const others = this.rollouts.filter(({ facts }) => facts.id !== report.id);
    const decision = decideReport(known, report, others, nowMs);
    if (decision.kind !== 'take') return decision;
    const rollout = this.#take({ facts: report, tokenName: known?.tokenName ?? tokenName, heardMs: nowMs });
    for (const traceId of report.given_up) this.#giveUp(toMark(traceId), report.id);
    return {
      kind: 'taken',
      rollout,
      isComplete: rollout.facts.replicas.length >= report.replica_count,
    };
  }

  /**
   * Notes what somebody asks of a rollout. One that nobody drives is aborted at once. Returns why not if it cannot be asked.
   */
  ask(id: string, kind: AskKind, by: string | null): KnownRollout | 'rollout_not_found' | 'rollout_over' {
    const known = this.find(id);
    if (known === null) return 'rollout_not_found';
    const { facts, tokenName, heardMs } = known;
    if (isOver(facts) || (facts.state === 'stopped' && kind !== 'abort')) return 'rollout_over';
    const asked = { ...facts, ask: { kind, version: facts.ask.version + 1, by }, replicas: [] };
    const isDriven = isLive(facts) && !hasVanished(known, this.#nowMs());
    const isAborted = kind === 'abort' && !isDriven;
    const ended = isAborted
      ? { ...asked, ...this.#toAborted(`${by ?? 'somebody'} aborted the rollout`) }
      : asked;
    return this.#take({ facts: ended, tokenName, heardMs });
  }

  /** Takes what another gateway, or an earlier run of this one, knows of a rollout. */
  learn(rollout: KnownRollout): void {
    this.#merge(rollout);
  }

  #giveUp(id: string, inFavourOf: string): void {
    const known = this.find(id);
    if (known === null || isOver(known.facts)) return;
    const end = this.#toAborted(`given up for the rollout ${inFavourOf}`);
    // Its driver should be gone. If it is not, it hears of this.
    const ask = { kind: 'abort', version: known.facts.ask.version + 1, by: null } as const;
    this.#take({ ...known, facts: { ...known.facts, ...end, ask, replicas: [] } });
  }

  #toAborted(sentence: string): Pick<RolloutFacts, 'state' | 'sentence' | 'problem' | 'ended_at'> {
    return { state: 'aborted', sentence, problem: null, ended_at: new Date(this.#epochMs()).toISOString() };
  }

  /** Takes news of which the other gateways must hear. */
  #take(news: KnownRollout): KnownRollout {
    const rollout = this.#merge(news);
    // The others hear of what this gateway has made of it.
    const told = { ...rollout, facts: { ...rollout.facts, replicas: news.facts.replicas } };
    for (const listener of this.#listeners) listener.onNews(told);
    return rollout;
  }

  #merge(news: KnownRollout): KnownRollout {
    const { facts } = news;
    const known = this.find(facts.id);
    const merged: KnownRollout =
      known === null
        ? news
        : {
            facts: mergeFacts(known.facts, facts),
            tokenName: known.tokenName ?? news.tokenName,
            heardMs: Math.max(known.heardMs, news.heardMs),
          };
    this.#known.set(facts.id, merged);
    this.#makeRoom();
    if (isWorthKeeping(known?.facts ?? null, merged.facts)) {
      for (const listener of this.#listeners) listener.onWorthKeeping();
    }
    return merged;
  }

  #makeRoom(): void {
    if (this.#known.size <= MAX_KNOWN) return;
    const oldestFirst = this.rollouts.toReversed();
    const oldest = oldestFirst.find(({ facts }) => !isLive(facts)) ?? oldestFirst[0];
    if (oldest !== undefined) this.#known.delete(oldest.facts.id);
  }
}

function compareStarts({ facts: a }: KnownRollout, { facts: b }: KnownRollout): number {
  return a.started_at < b.started_at || (a.started_at === b.started_at && a.id < b.id) ? -1 : 1;
}
