import { randomBytes } from 'node:crypto';
import type { ShadowSpan } from '#otel/span';
import type { AnswerListener, SendListener, SentRequest } from '#proxy';
import type { Replica, ReplicaPool } from '#replicas';
import type { SharedLimit } from '#shared-memory';
import { sizeOf } from '#wire/message';
import type { CopyTimeouts } from './copy.ts';
import { Pair } from './pair.ts';
import type { ShadowReport } from './shadow-report.ts';
import { readBodyFacts, type Skip, whyNotCopied } from './why-not.ts';

/** What is copied, and for how long a copy may wait. */
export interface ShadowSettings {
  /** The share of the requests of its models of which a shadow gets copies, if nothing else is said of it. */
  readonly share: number;
  /** The most copies in flight on a shadow. */
  readonly maxInflight: number;
  readonly cutsWithClient: boolean;
  readonly timeouts: CopyTimeouts;
}

export interface ShadowCollaborators {
  readonly pool: Pick<ReplicaPool, 'shadowsOf' | 'acquireCopy' | 'waitingCount'>;
  /** What bodies in memory may take. */
  readonly bodyBudget: Pick<SharedLimit, 'tryAcquire' | 'release'>;
  /** Called a few times per second at most, while there is something to tell. */
  readonly onReport: (report: ShadowReport) => void;
  /** Told of a defect of ours. */
  readonly onDefect: (error: unknown) => void;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Copies take no more than this share of the room for bodies: the rest stays free for clients. */
const BODY_SHARE = 0.5;
/** What has ended is told together. */
const REPORT_MS = 100;
const MAX_REPORTED = 256;

/**
 * Sends copies of requests to shadows, in one thread: decides which, hears both answers, and tells what they have shown. A
 * client's request never waits for any of it.
 */
export class ShadowCopies implements SendListener {
  #settings: ShadowSettings;
  readonly #collaborators: ShadowCollaborators;
  readonly #pressure = new LoopPressure();
  readonly #pairs = new Set<Pair>();
  #spans: ShadowSpan[] = [];
  #observed: ShadowReport['pairs'][number][] = [];
  #skips = new Map<string, Map<Skip, number>>();
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(settings: ShadowSettings, collaborators: ShadowCollaborators) {
    this.#settings = settings;
    this.#collaborators = collaborators;
  }

  /** Uses these settings from now on. */
  configure(settings: ShadowSettings): void {
    this.#settings = settings;
  }

  wants(model: string): boolean {
    return this.#collaborators.pool.shadowsOf(model).length > 0;
  }

  onSent(sent: SentRequest): AnswerListener | null {
    try {
      const shadow = this.#choose(sent.model);
      return shadow === null ? null : this.#copy(sent, shadow);
    } catch (error) {
      this.#collaborators.onDefect(error);
      return null;
    }
  }

  /** Ends all copies, and tells what is left to tell. */
  stop(): void {
    this.#isStopped = true;
    this.#pressure.stop();
    for (const pair of [...this.#pairs]) pair.cut();
    this.#report();
  }

  /** The shadow whose turn it is; null: it is none's. Of several, a request goes to one at most. */
  #choose(model: string): Replica | null {
    let left = this.#collaborators.random();
    for (const replica of this.#collaborators.pool.shadowsOf(model)) {
      const { shadow } = replica;
      if (shadow === null || (replica.isDrained && !shadow.ignoresDrain)) continue;
      left -= shadow.share ?? this.#settings.share;
      if (left < 0) return replica;
    }
    return null;
  }

  #copy(sent: SentRequest, shadow: Replica): Pair | null {
    const { pool, bodyBudget } = this.#collaborators;
    const { replica: primary, facts, reading } = sent;
    const bodyBytes = sizeOf(sent.body);
    const known = {
      keepsResponses: reading.endpoint.keepsResponses,
      hasPreviousResponse: facts.previousResponseId !== undefined,
      hasTools: facts.tools !== undefined,
      bodyBytes,
      waiting: pool.waitingCount,
      hasWaited: sent.hasWaited,
      isLoopBusy: this.#pressure.isBusy,
      inflight: primary.inflight,
      maxInflight: primary.config.maxInflight,
      isFailing: primary.isFailing,
      isOnRamp: primary.isOnRamp,
    };
    const why = whyNotCopied(known);
    if (why !== null) return this.#skip(shadow, why);
    const body = readBodyFacts(sent.body, known);
    if (body.skip !== null) return this.#skip(shadow, body.skip);
    const { maxInflight } = this.#settings;
    if (!bodyBudget.tryAcquire(bodyBytes, 1 - BODY_SHARE)) return this.#skip(shadow, 'gateway_busy');
    const lease = pool.acquireCopy(shadow, maxInflight);
    if (lease === null) {
      bodyBudget.release(bodyBytes);
      return this.#skip(shadow, 'shadow_full');
    }
    const { timeouts, cutsWithClient } = this.#settings;
    const pair: Pair = new Pair({
      sent,
      lease,
      timeouts,
      cutsWithClient,
      asksSameOutput: body.asksSameOutput,
      traceId: randomBytes(16).toString('hex'),
      leaseAgain: () => (this.#isStopped ? null : pool.acquireCopy(shadow, maxInflight)),
      onSpan: (span) => {
        this.#spans.push(span);
        this.#reportSoon();
      },
      onOver: (observation) => {
        bodyBudget.release(bodyBytes);
        this.#pairs.delete(pair);
        if (observation !== null) this.#observed.push(observation);
        this.#reportSoon();
      },
    });
    this.#pairs.add(pair);
    return pair;
  }

  #skip({ name }: Replica, why: Skip): null {
    const counts = this.#skips.get(name) ?? new Map<Skip, number>();
    this.#skips.set(name, counts.set(why, (counts.get(why) ?? 0) + 1));
    this.#reportSoon();
    return null;
  }

  #reportSoon(): void {
    if (this.#spans.length + this.#observed.length >= MAX_REPORTED) this.#report();
    else this.#timer ??= setTimeout(() => this.#report(), REPORT_MS).unref();
  }

  #report(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const skips = [...this.#skips].flatMap(([shadow, counts]) =>
      Array.from(counts, ([why, count]) => ({ shadow, why, count })),
    );
    const report = { spans: this.#spans, pairs: this.#observed, skips };
    if (report.spans.length + report.pairs.length + skips.length === 0) return;
    [this.#spans, this.#observed, this.#skips] = [[], [], new Map()];
    this.#collaborators.onReport(report);
  }
}

const LOOK_MS = 100;

/** A timer that is so late shows that clients wait for each other. */
const LATE_MS = 30;

/** Whether the event loop of this thread has fallen behind. It is looked at from the first question on. */
class LoopPressure {
  #timer: NodeJS.Timeout | null = null;
  #dueMs = 0;
  #isBusy = false;

  get isBusy(): boolean {
    if (this.#timer === null) {
      this.#dueMs = performance.now() + LOOK_MS;
      this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    }
    return this.#isBusy;
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#isBusy = false;
  }

  #look(): void {
    const nowMs = performance.now();
    this.#isBusy = nowMs - this.#dueMs > LATE_MS;
    this.#dueMs = nowMs + LOOK_MS;
  }
}
