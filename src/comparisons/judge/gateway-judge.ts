import { randomBytes } from 'node:crypto';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import { type Comparison, GroupComparison } from '#verdict';
import type { Certainty } from '#verdict/judgement';
import type { JudgeExchange } from '../fleet/judge-exchange.ts';
import type { FleetQuestion } from '../fleet/judge-text.ts';
import { OthersQuestions } from '../fleet/others-questions.ts';
import { findGroups, type Groups, type GroupsProblem, type Selectors } from '../groups/find-groups.ts';
import { PodLabels, type PodLabelsCollaborators, type PodsProblem } from '../groups/pod-labels.ts';
import { judgePairs, type PairsReport, toPairsReport } from '../pairs/judge-pairs.ts';
import type { PairLog } from '../pairs/pair-log.ts';
import { RunningPairs } from '../pairs/running-pairs.ts';
import type { RequestRing } from '../requests/request-ring.ts';
import { judgeGroups, type Verdict } from './judge-groups.ts';
import { type Moment, RunningComparison } from './running-comparison.ts';

/** What somebody asks for. */
export interface Question extends Certainty {
  readonly selectors: Selectors;
  /** The selectors as they were written: what is asked again is the same comparison. */
  readonly texts: { readonly candidate: string; readonly baseline: string | null };
  /** Of shadows: how many times as slow as their primaries they may be: 1.01. */
  readonly tolerance: number;
  /** Milliseconds since 1970; null: since the candidate changed, or the start of the gateway. */
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
  /** How many gateways have served the requests that were compared. */
  readonly gateways: number;
  /** What pairs of answers show, if the candidate is shadows; else null. */
  readonly pairs: PairsReport | null;
}

/** Why nothing can be compared. */
export type Refusal = GroupsProblem | PodsProblem;

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
  readonly pairLog: PairLog;
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
  readonly routingPolicy: () => string;
  /** Of the prices of replicas. */
  readonly currency: string;
  /** The other gateways of a fleet; null: there is none. */
  readonly exchange: JudgeExchange | null;
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number;
}

/** One comparison, and what was last found. */
interface Run {
  /** By which the other gateways of a fleet know it. */
  readonly id: string;
  readonly running: RunningComparison | RunningPairs;
  /** Since when requests are meant: monotonic. */
  readonly sinceMs: number;
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

/** How long a first answer waits for what the other gateways of a fleet know. */
const FIRST_ANSWERS_MS = 300;

/** What two conversions of a time may differ by: the clock tells whole milliseconds, and is read for each. */
const CLOCK_ERROR_MS = 2;

const NO_PODS: ReadonlySet<string> = new Set();

/**
 * The judge of the gateway: compares groups of replicas by the requests that this gateway and the others of its fleet have
 * served. A comparison goes on until nobody has asked for it for ten minutes. However often one asks, the verdict is as sure
 * as it says.
 */
export class GatewayJudge {
  readonly #collaborators: Required<JudgeCollaborators>;
  readonly #runs = new Map<string, Run>();
  readonly #podLabels: PodLabels;
  readonly #others: OthersQuestions;
  readonly #startedMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: JudgeCollaborators) {
    this.#podLabels = new PodLabels(collaborators);
    this.#collaborators = { nowMs: () => performance.now(), epochMs: Date.now, ...collaborators };
    const { ring, nowMs } = this.#collaborators;
    this.#startedMs = nowMs();
    this.#others = new OthersQuestions({
      ring,
      nowMs,
      momentOf: (groups) => this.#momentOf(groups),
      findGroups: (selectors, gone) => this.#findGroups(selectors, gone),
    });
  }

  /** Begins to answer the other gateways of a fleet. */
  start(): void {
    this.#collaborators.exchange?.start((question) => {
      if (this.#others.hear(question)) this.#tell();
      this.#keepLooking();
    });
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
  async ask(question: Question): Promise<Answer | Refusal> {
    const { registry, ring, pairLog, exchange, nowMs, epochMs } = this.#collaborators;
    this.#forgetUnasked();
    const gone = new Set([...this.#runs.values()].flatMap(({ groups }) => [...groups.baseline]));
    const groups = await this.#findGroups(question.selectors, gone);
    if ('code' in groups) return groups;
    const own = registry.replicas.filter(({ name }) => groups.candidate.has(name));
    const isPaired = own.length > 0 && own.every(({ shadow }) => shadow !== null);
    const kept = isPaired ? pairLog : ring;
    const { texts, sinceEpochMs, tolerance } = question;
    const changedMs = this.#changedMs(groups);
    const key = JSON.stringify([texts, sinceEpochMs ?? changedMs, isPaired && tolerance]);
    const begun = this.#runs.get(key);
    const sinceMs = changedMs ?? kept.completeFromMs;
    const run = begun ?? this.#begin(question, groups, { sinceMs, isPaired });
    // The order of the map is that in which they were last asked for.
    this.#runs.delete(key);
    this.#runs.set(key, run);
    for (const oldest of this.#runs.keys()) if (this.#runs.size > MAX_RUNNING) this.#end(oldest);
    this.#keepLooking();
    run.groups = groups;
    run.askedAtMs = nowMs();
    // Who asks once wants to know what the others know, too.
    if (begun === undefined && exchange !== null && !isPaired) await sleep(FIRST_ANSWERS_MS);
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
      gateways: 1 + (exchange?.gatewaysOf(run.id) ?? 0),
      pairs: run.running instanceof RunningPairs ? this.#toReport(run.running, groups) : null,
    };
  }

  /** Ends all comparisons. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#collaborators.exchange?.stop();
    this.#runs.clear();
    this.#others.clear();
  }

  async #findGroups(
    selectors: Selectors,
    gone: ReadonlySet<string>,
  ): Promise<Groups | GroupsProblem | PodsProblem> {
    const pods = await this.#findPods(selectors);
    if ('code' in pods) return pods;
    const podsOf = (labels: readonly string[]) => pods.get(labels.join()) ?? NO_PODS;
    return findGroups(selectors, { replicas: this.#collaborators.registry.replicas, podsOf, gone });
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

  #begin(
    question: Question,
    groups: Groups,
    { isPaired, ...byDefault }: { readonly sinceMs: number; readonly isPaired: boolean },
  ): Run {
    const { ring, pairLog, exchange, nowMs, epochMs } = this.#collaborators;
    // The time of day may have been set since: what is known is monotonic, and is told by the clock as it is now.
    const offsetMs = epochMs() - nowMs();
    const sinceEpochMs = question.sinceEpochMs ?? Math.ceil(byDefault.sinceMs + offsetMs);
    const sinceMs = question.sinceEpochMs === null ? byDefault.sinceMs : sinceEpochMs - offsetMs;
    const fromMs = Math.max(sinceMs, (isPaired ? pairLog : ring).completeFromMs);
    const id = randomBytes(8).toString('hex');
    if (!isPaired) {
      exchange?.begin(id);
      exchange?.tell([this.#toFleetQuestion(id, question, sinceMs)], []);
    }
    return {
      id,
      sinceMs,
      running: isPaired
        ? new RunningPairs(pairLog, fromMs, question.tolerance)
        : new RunningComparison(ring, fromMs),
      question,
      sinceEpochMs,
      fromEpochMs: fromMs - sinceMs <= CLOCK_ERROR_MS ? sinceEpochMs : Math.round(fromMs + offsetMs),
      groups,
      answer: null,
      askedAtMs: nowMs(),
    };
  }

  #toReport(running: RunningPairs, { candidate, baseline }: Groups): PairsReport {
    const { registry, currency } = this.#collaborators;
    const of = (names: ReadonlySet<string>) => registry.replicas.filter(({ name }) => names.has(name));
    return toPairsReport(running, { candidate: of(candidate), baseline: of(baseline), currency });
  }

  /**
   * When the candidate was last drained or undrained, became a shadow or ceased to be one, or came, if all of its replicas
   * have come since the gateway started: before, it was another process. Null: never.
   */
  #changedMs({ candidate }: Groups): number | null {
    const own = this.#collaborators.registry.replicas.filter(
      ({ name, isRemoving }) => candidate.has(name) && !isRemoving,
    );
    const cameMs = Math.min(...own.map(({ knownSinceMs }) => knownSinceMs));
    const isNew = own.length > 0 && cameMs > this.#startedMs;
    const latestMs = Math.max(...own.map(({ changedMs }) => changedMs), isNew ? cameMs : -Infinity);
    return latestMs === -Infinity ? null : latestMs;
  }

  #keepLooking(): void {
    this.#timer ??= setInterval(() => this.#lookAtAll(), LOOK_EVERY_MS).unref();
  }

  #lookAtAll(): void {
    this.#forgetUnasked();
    for (const run of this.#runs.values()) {
      void this.#catchUp(run).then(() => {
        run.answer = this.#judge(run, run.question);
      });
    }
    this.#tell();
  }

  /** Tells the other gateways what is asked here, and what is known here of what they are asked. */
  #tell(): void {
    const { exchange } = this.#collaborators;
    if (exchange === null) return;
    const asked = [...this.#runs.values()].filter(({ running }) => running instanceof RunningComparison);
    const questions = asked.map(({ id, question, sinceMs }) => this.#toFleetQuestion(id, question, sinceMs));
    void this.#others.advance().then((facts) => exchange.tell(questions, facts));
  }

  #toFleetQuestion(id: string, { texts }: Question, sinceMs: number): FleetQuestion {
    return { id, ...texts, sinceAgoMs: Math.max(0, this.#collaborators.nowMs() - sinceMs) };
  }

  /** What the other gateways know of it. Of pairs each knows its own alone. */
  #toldOf({ id }: Run): readonly Comparison[] {
    return this.#collaborators.exchange?.factsOf(id) ?? [];
  }

  #end(key: string): void {
    const run = this.#runs.get(key);
    if (run !== undefined) this.#collaborators.exchange?.end(run.id);
    this.#runs.delete(key);
  }

  #forgetUnasked(): void {
    const { nowMs } = this.#collaborators;
    for (const [key, { askedAtMs }] of this.#runs) {
      if (nowMs() - askedAtMs >= KEPT_AFTER_ASKED_MS) this.#end(key);
    }
    if (this.#runs.size > 0 || !this.#others.isEmpty) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks at all requests that have ended. In between, others may use the event loop. */
  async #catchUp(run: Run): Promise<void> {
    const { running } = run;
    if (running instanceof RunningPairs) running.advance(run.groups);
    else while (running.advance(this.#momentOf(run.groups))) await setImmediate();
  }

  #judge(run: Run, { falseAlarm, missed }: Question): Verdict {
    const { registry, routingPolicy } = this.#collaborators;
    const replicas = byName(registry.replicas);
    // With prefix_affinity a replica gets other prompts than its peers.
    const sharesPrompts = routingPolicy() !== 'prefix_affinity';
    const surroundings = { moment: this.#momentOf(run.groups), replicas };
    const { running } = run;
    if (running instanceof RunningPairs) return judgePairs(running, surroundings, { falseAlarm, missed });
    const comparison = new GroupComparison([running.comparison.facts, ...this.#toldOf(run)]);
    return judgeGroups({ comparison, running }, surroundings, { falseAlarm, missed, sharesPrompts });
  }

  #momentOf(groups: Groups): Moment {
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
