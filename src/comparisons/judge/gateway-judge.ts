import { setImmediate } from 'node:timers/promises';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/control';
import { findGroups, type Groups, type GroupsProblem, type Selectors } from '../groups/find-groups.ts';
import { PodLabels, type PodLabelsCollaborators, type PodsProblem } from '../groups/pod-labels.ts';
import type { RequestRing } from '../requests/request-ring.ts';
import { type JudgeSettings, judgeGroups, type Verdict } from './judge-groups.ts';
import { type Moment, RunningComparison } from './running-comparison.ts';

/** What somebody asks for. */
export interface Question extends Omit<JudgeSettings, 'sharesPrompts'> {
  readonly selectors: Selectors;
  /** The selectors as they were written: what is asked again is the same comparison. */
  readonly texts: { readonly candidate: string; readonly baseline: string | null };
  /** Milliseconds since 1970; null: the latest drain or undrain of the candidate, or the start of the gateway. */
  readonly sinceEpochMs: number | null;
}

/** A verdict, whom it is about, and which requests it could look at. Times are milliseconds since 1970. */
export interface Answer extends Verdict {
  readonly candidate: readonly string[];
  readonly baseline: readonly string[];
  readonly sinceEpochMs: number;
  /** Later than `sinceEpochMs` if requests from then on are not kept any more. */
  readonly fromEpochMs: number;
  readonly untilEpochMs: number;
}

/** A comparison that is going on, for metrics. */
export interface ComparisonState {
  readonly candidate: string;
  /** Null: all other replicas that serve a model of the candidate. */
  readonly baseline: string | null;
  readonly verdict: Verdict['verdict'];
  readonly figures: Verdict['figures'];
}

export interface JudgeCollaborators extends PodLabelsCollaborators {
  readonly ring: RequestRing;
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly routingPolicy: () => string;
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number;
}

/** One comparison, and what was last found. */
interface Run {
  readonly running: RunningComparison;
  readonly question: Question;
  readonly sinceEpochMs: number;
  readonly fromEpochMs: number;
  groups: Groups;
  answer: Verdict | null;
  askedAtMs: number;
}

type Pods = ReadonlyMap<string, ReadonlySet<string>>;

/** Comparisons that go on at the same time. The one that nobody has asked for longest makes room. */
const MAX_RUNNING = 64;

/** How long a comparison goes on after it was last asked for. */
const KEPT_AFTER_ASKED_MS = 600_000;

const LOOK_EVERY_MS = 1_000;

const NO_PODS: ReadonlySet<string> = new Set();

/**
 * The judge of the gateway: compares groups of replicas by the requests that this gateway has served. A comparison goes on
 * until nobody has asked for it for ten minutes. However often one asks, the verdict is as sure as it says.
 */
export class GatewayJudge {
  readonly #collaborators: Required<JudgeCollaborators>;
  readonly #runs = new Map<string, Run>();
  readonly #podLabels: PodLabels;
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: JudgeCollaborators) {
    this.#podLabels = new PodLabels(collaborators);
    this.#collaborators = { nowMs: () => performance.now(), epochMs: Date.now, ...collaborators };
  }

  /** The comparisons that go on, with what was last found, by their selectors: the latest of each. */
  get running(): readonly ComparisonState[] {
    const latest = new Map<string, Run>();
    for (const run of this.#runs.values()) latest.set(JSON.stringify(run.question.texts), run);
    return [...latest.values()].flatMap(({ question: { texts }, answer }) =>
      answer === null ? [] : [{ ...texts, verdict: answer.verdict, figures: answer.figures }],
    );
  }

  /** Compares, or says why it cannot. */
  async ask(question: Question): Promise<Answer | GroupsProblem | PodsProblem> {
    const { registry, ring, nowMs, epochMs } = this.#collaborators;
    const pods = await this.#findPods(question.selectors);
    if ('code' in pods) return pods;
    const podsOf = (labels: readonly string[]) => pods.get(labels.join()) ?? NO_PODS;
    this.#forgetUnasked();
    const gone = new Set([...this.#runs.values()].flatMap(({ groups }) => [...groups.baseline]));
    const groups = findGroups(question.selectors, { replicas: registry.replicas, podsOf, gone });
    if ('code' in groups) return groups;
    const toEpochMs = (ms: number) => Math.round(epochMs() - nowMs() + ms);
    const sinceEpochMs = question.sinceEpochMs ?? this.#changedAtMs(groups) ?? toEpochMs(ring.completeFromMs);
    const key = JSON.stringify([question.texts, question.sinceEpochMs ?? this.#changedAtMs(groups)]);
    const run = this.#runs.get(key) ?? this.#begin(question, groups, sinceEpochMs);
    // The order of the map is that in which they were last asked for.
    this.#runs.delete(key);
    this.#runs.set(key, run);
    for (const oldest of this.#runs.keys()) if (this.#runs.size > MAX_RUNNING) this.#runs.delete(oldest);
    this.#timer ??= setInterval(() => this.#lookAtAll(), LOOK_EVERY_MS).unref();
    run.groups = groups;
    run.askedAtMs = nowMs();
    await this.#catchUp(run);
    const verdict = this.#judge(run, question);
    run.answer = verdict;
    return {
      ...verdict,
      candidate: [...groups.candidate],
      baseline: [...groups.baseline],
      sinceEpochMs: run.sinceEpochMs,
      fromEpochMs: run.fromEpochMs,
      untilEpochMs: epochMs(),
    };
  }

  /** Ends all comparisons. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#runs.clear();
  }

  /** The uids of the pods with the labels of each selector, by these labels. */
  async #findPods({ candidate, baseline }: Selectors): Promise<Pods | PodsProblem> {
    const pods = new Map<string, ReadonlySet<string>>();
    for (const selector of [candidate, baseline]) {
      if (selector?.kind !== 'labels') continue;
      const found = await this.#podLabels.find(selector.labels);
      if ('code' in found) return found;
      pods.set(selector.labels.join(), found);
    }
    return pods;
  }

  #begin(question: Question, groups: Groups, sinceEpochMs: number): Run {
    const { ring, nowMs, epochMs } = this.#collaborators;
    const offsetMs = epochMs() - nowMs();
    const fromMs = Math.max(sinceEpochMs - offsetMs, ring.completeFromMs);
    return {
      running: new RunningComparison(ring, fromMs),
      question,
      sinceEpochMs,
      fromEpochMs: Math.max(sinceEpochMs, Math.round(fromMs + offsetMs)),
      groups,
      answer: null,
      askedAtMs: nowMs(),
    };
  }

  /** When the candidate was last drained or undrained: before, it may have been another process. Null: never. */
  #changedAtMs({ candidate }: Groups): number | null {
    const times = this.#collaborators.registry.replicas.flatMap(({ name, drain: { since } }) =>
      candidate.has(name) && since !== null ? [Date.parse(since)] : [],
    );
    return times.length === 0 ? null : Math.max(...times);
  }

  #lookAtAll(): void {
    this.#forgetUnasked();
    for (const run of this.#runs.values()) {
      void this.#catchUp(run).then(() => {
        run.answer = this.#judge(run, run.question);
      });
    }
  }

  #forgetUnasked(): void {
    const { nowMs } = this.#collaborators;
    for (const [key, { askedAtMs }] of this.#runs) {
      if (nowMs() - askedAtMs >= KEPT_AFTER_ASKED_MS) this.#runs.delete(key);
    }
    if (this.#runs.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks at all requests that have ended. In between, others may use the event loop. */
  async #catchUp(run: Run): Promise<void> {
    while (run.running.advance(this.#momentOf(run))) await setImmediate();
  }

  #judge(run: Run, { falseAlarm, missed }: Question): Verdict {
    const { registry, routingPolicy, epochMs } = this.#collaborators;
    const replicas = byName(registry.replicas);
    // With prefix_affinity a replica gets other prompts than its peers.
    const sharesPrompts = routingPolicy() !== 'prefix_affinity';
    const surroundings = { moment: this.#momentOf(run), replicas, epochMs: epochMs() };
    return judgeGroups(run.running, surroundings, { falseAlarm, missed, sharesPrompts });
  }

  #momentOf({ groups }: Run): Moment {
    const { registry, nowMs } = this.#collaborators;
    const replicas = byName(registry.replicas);
    const shareOf = (name: string) => {
      const replica = replicas.get(name);
      return replica === undefined || replica.drain.drained ? null : (replica.ramp?.share ?? 1);
    };
    const peerCount = [...groups.baseline].filter((name) => shareOf(name) === 1).length;
    return { groups, nowMs: nowMs(), peerCount, shareOf };
  }
}

function byName(replicas: readonly RegisteredReplica[]): ReadonlyMap<string, RegisteredReplica> {
  return new Map(replicas.map((replica) => [replica.name, replica]));
}
