import { atMostOncePerMinute, inParallel } from '#base';
import { type Clock, type Log, systemClock } from '#otel/base';
import { MAX_REPLICAS } from '#replicas/shared';
import { expandService } from '../../expand-service.ts';
import { byName } from '../../order-by-name.ts';
import type { Endpoint } from '../../resolver.ts';
import type { ServiceConfig } from '../../servers.ts';
import {
  type ReadinessGateState,
  type SourceStatus,
  toFailing,
  toOk,
  UNKNOWN_STATUS,
} from '../../source-state.ts';
import { type ApiError, toApiError } from '../api-call.ts';
import { nextDelayMs } from '../back-off.ts';
import { explainRefusal, STATUS_RULE } from '../explain-refusal.ts';
import type { PodCheck } from './pod-check.ts';
import type { ConditionOutcome, PodCondition, PodReference } from './pod-condition-api.ts';

/** Pods that are asked, or written of, at the same time. */
const PARALLEL_PODS = 16;

/** How soon a pod is asked again that is not ready to serve. */
const ASK_AGAIN_MS = 1_500;
/** How soon a confirmed pod is that does not get ready: somebody may have taken its condition away. */
const CONFIRM_AGAIN_MS = 60_000;
/** The least time between two lines of the log about what one pod waits for. */
const LOG_AGAIN_MS = 60_000;

/** Waiting pods that the admin API names: those that wait for the longest time. */
const MAX_SHOWN_PODS = 16;

export interface ReadinessGateCollaborators {
  readonly check: PodCheck;
  /** Makes the condition of a pod true. Rejects with an ApiError. */
  readonly write: (
    pod: PodReference,
    condition: PodCondition,
    signal: AbortSignal,
  ) => Promise<ConditionOutcome>;
  readonly log: Log<'info' | 'warn'>;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * Confirms the pods of one Service: asks each one that is not ready, and makes its condition true once it has answered.
 * The condition is never made false again, so that a gateway that is cut off takes no pod out of service.
 */
export class ReadinessGate {
  readonly #condition: string;
  readonly #collaborators: Required<ReadinessGateCollaborators>;
  readonly #stopped = new AbortController();
  #service: ServiceConfig;
  /** By uid. The order is that in which they are asked. */
  readonly #pods = new Map<string, UnreadyPod>();
  /** The uids of those that are not among them any more, the latest last. */
  readonly #left = new Set<string>();
  #status: SourceStatus = UNKNOWN_STATUS;
  #confirmedCount = 0;
  /** Failed writes in a row, those at the same time as one. */
  #failures = 0;
  /** The API server is not written to before: monotonic. */
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #hasLoggedFailure = false;
  readonly #logFailure: (error: ApiError, pod: string) => void;
  readonly #logMissingGate: (pod: string) => void;

  /** @param condition the type of the condition */
  constructor(service: ServiceConfig, condition: string, collaborators: ReadinessGateCollaborators) {
    this.#service = service;
    this.#condition = condition;
    this.#collaborators = { clock: systemClock, random: Math.random, ...collaborators };
    const { log } = collaborators;
    this.#logFailure = atMostOncePerMinute((error, pod) => {
      this.#hasLoggedFailure = true;
      const { code, status } = error;
      const fields = { ...this.#fieldsOf(pod), error_code: code, ...(status === null ? {} : { status }) };
      log.info(fields, `pods not confirmed: ${toAdvice(error)}`);
    });
    this.#logMissingGate = atMostOncePerMinute((pod) => {
      log.warn(this.#fieldsOf(pod), 'pod not held back: its readinessGates do not name the condition');
    });
  }

  get condition(): string {
    return this.#condition;
  }

  get state(): ReadinessGateState {
    const waiting = [...this.#pods.values()].filter(({ isConfirmed }) => !isConfirmed);
    const oldest = waiting
      .toSorted((a, b) => a.seenAtMs - b.seenAtMs || byName(a.reference, b.reference))
      .slice(0, MAX_SHOWN_PODS);
    return {
      ...this.#status,
      condition: this.#condition,
      confirmedCount: this.#confirmedCount,
      waitingCount: waiting.length,
      waiting: oldest.map(({ reference, since, problem }) => ({ pod: reference.name, since, problem })),
    };
  }

  /** Whether a pod with this uid was not ready a while ago, and is not among those any more. */
  hasLeft(uid: string): boolean {
    return this.#left.has(uid);
  }

  /** Takes over which pods are not ready, and asks those whose turn has come. `service`: how they are reached. */
  update(service: ServiceConfig, unready: readonly Endpoint[]): void {
    this.#service = service;
    for (const uid of takePods(this.#pods, unready, this.#nowMs())) this.#left.add(uid);
    for (const uid of this.#left) if (this.#left.size > MAX_REPLICAS) this.#left.delete(uid);
    if (!this.#isAsking) void this.#askDue();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #askDue(): Promise<void> {
    this.#isAsking = true;
    try {
      const due = [...this.#pods.values()].filter(({ dueAtMs }) => dueAtMs <= this.#nowMs());
      await inParallel(due, PARALLEL_PODS, (pod) => this.#ask(pod));
    } finally {
      this.#isAsking = false;
    }
  }

  async #ask(pod: UnreadyPod): Promise<void> {
    const { check } = this.#collaborators;
    const { signal } = this.#stopped;
    const [config] = expandService(this.#service, [pod.endpoint]);
    if (config === undefined || this.#isHeld || !this.#isWanted(pod)) return;
    const problem = await check(config, signal);
    if (!this.#isWanted(pod)) return;
    if (problem === null) await this.#confirm(pod);
    else this.#noteProblem(pod, problem);
  }

  async #confirm(pod: UnreadyPod): Promise<void> {
    const { write, log } = this.#collaborators;
    const { signal } = this.#stopped;
    const { reference, seenAtMs, isConfirmed } = pod;
    try {
      const since = isConfirmed ? null : new Date().toISOString();
      const outcome = await write(reference, { type: this.#condition, since }, signal);
      if (signal.aborted) return;
      this.#noteSuccess();
      if (outcome === 'gone') {
        // The slices will say so too.
        pod.dueAtMs = this.#nowMs() + ASK_AGAIN_MS;
        return;
      }
      pod.isConfirmed = true;
      pod.dueAtMs = outcome === 'no_gate' ? Number.POSITIVE_INFINITY : this.#nowMs() + CONFIRM_AGAIN_MS;
      if (outcome === 'no_gate') this.#logMissingGate(reference.name);
      if (isConfirmed) return;
      this.#confirmedCount += 1;
      const waitedMs = Math.round(this.#nowMs() - seenAtMs);
      log.info({ ...this.#fieldsOf(reference.name), waited_ms: waitedMs }, 'pod confirmed');
    } catch (error) {
      if (!signal.aborted) this.#noteFailure(pod, toApiError(error));
    }
  }

  #noteSuccess(): void {
    this.#failures = 0;
    this.#status = toOk(this.#status);
    if (!this.#hasLoggedFailure) return;
    this.#hasLoggedFailure = false;
    this.#collaborators.log.info({ service: this.#service.name }, 'pods confirmed again');
  }

  #noteFailure(pod: UnreadyPod, error: ApiError): void {
    // Several at the same time have one cause.
    if (!this.#isHeld) this.#failures += 1;
    const pauseMs = nextDelayMs(this.#failures, this.#collaborators.random());
    this.#heldUntilMs = this.#nowMs() + Math.max(ASK_AGAIN_MS, pauseMs, error.retryAfterMs);
    this.#status = toFailing(this.#status, error.code, {
      cause: error.reason,
      advice: explainRefusal(error, STATUS_RULE),
    });
    pod.problem = `its condition is not written (${error.code})`;
    this.#logFailure(error, pod.reference.name);
    // The others come first: perhaps only this one is refused.
    if (this.#pods.delete(pod.reference.uid)) this.#pods.set(pod.reference.uid, pod);
  }

  #noteProblem(pod: UnreadyPod, problem: string): void {
    const nowMs = this.#nowMs();
    pod.problem = problem;
    pod.dueAtMs = nowMs + ASK_AGAIN_MS;
    if (pod.loggedProblem === problem || nowMs - pod.loggedAtMs < LOG_AGAIN_MS) return;
    pod.loggedProblem = problem;
    pod.loggedAtMs = nowMs;
    this.#collaborators.log.info(this.#fieldsOf(pod.reference.name), `pod not confirmed yet: ${problem}`);
  }

  /** Whether the API server is left alone for a while. */
  get #isHeld(): boolean {
    return this.#nowMs() < this.#heldUntilMs;
  }

  /** Whether the slices still list the pod as one that is not ready and does not terminate. */
  #isWanted(pod: UnreadyPod): boolean {
    return !this.#stopped.signal.aborted && this.#pods.get(pod.reference.uid) === pod;
  }

  #nowMs(): number {
    return this.#collaborators.clock.nowMs();
  }

  #fieldsOf(pod: string) {
    return { service: this.#service.name, pod, condition: this.#condition };
  }
}

function toAdvice(error: ApiError): string {
  const refusal = explainRefusal(error, STATUS_RULE);
  if (refusal !== null) return refusal;
  return error.code === 'no_service_account'
    ? 'the token of the service account cannot be used'
    : 'the API server cannot be written to, and is asked again';
}

/** A pod that is not ready, and what the gateway has done about it. */
interface UnreadyPod {
  readonly reference: PodReference;
  /** When it was first seen: monotonic, and in RFC 3339. */
  readonly seenAtMs: number;
  readonly since: string;
  endpoint: Endpoint;
  /** When it is asked next: monotonic. */
  dueAtMs: number;
  isConfirmed: boolean;
  /** What it waits for, as a phrase; null before it was asked. */
  problem: string | null;
  loggedProblem: string | null;
  loggedAtMs: number;
}

/**
 * Makes `pods`, which are by uid, those that are not ready now. One that stays keeps what is known of it. Returns the uids
 * of the others, which became ready or end.
 */
function takePods(
  pods: Map<string, UnreadyPod>,
  unready: readonly Endpoint[],
  nowMs: number,
): readonly string[] {
  const found = new Map(unready.flatMap(toReferences));
  const left = [...pods.keys()].filter((uid) => !found.has(uid));
  for (const uid of left) pods.delete(uid);
  for (const [uid, { reference, endpoint }] of found) {
    const known = pods.get(uid);
    if (known !== undefined) known.endpoint = endpoint;
    else pods.set(uid, newPod(reference, endpoint, nowMs));
  }
  return left;
}

function newPod(reference: PodReference, endpoint: Endpoint, nowMs: number): UnreadyPod {
  return {
    reference,
    endpoint,
    seenAtMs: nowMs,
    since: new Date().toISOString(),
    dueAtMs: nowMs,
    isConfirmed: false,
    problem: null,
    loggedProblem: null,
    loggedAtMs: Number.NEGATIVE_INFINITY,
  };
}

/** The name of a pod, as it may stand in a path. RFC 1123, section 2.1. */
const POD_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Without a uid the gateway could not tell the pod from the next one of its name. */
function toReferences(
  endpoint: Endpoint,
): [uid: string, { readonly reference: PodReference; readonly endpoint: Endpoint }][] {
  const { name = '', uid = null } = endpoint.server?.pod ?? {};
  if (uid === null || !POD_NAME.test(name)) return [];
  return [[uid, { reference: { name, uid }, endpoint }]];
}
