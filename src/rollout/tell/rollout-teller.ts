import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '#base';
import { memberOf } from '#base/parsed';
import { type AdminClient, RefusedError, UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import type { Phase, ReplicaFacts, RolloutFacts } from '#rollout-board/facts';
import type { Figures } from '../report/reporter.ts';
import { readAsk } from './read-rollout.ts';
import type { Steering } from './steering.ts';

/** What of a rollout does not change while it runs. */
export type RolloutHead = Omit<
  RolloutFacts,
  'seq' | 'ended_at' | 'state' | 'sentence' | 'problem' | 'ask' | 'replica_count' | 'replicas'
>;

/** How a rollout is, as a whole. */
export type RolloutState = Pick<RolloutFacts, 'state' | 'sentence' | 'problem'>;

/** One step of a replica that has ended. */
export type EndedStep = ReplicaFacts['steps'][number];

/** What a teller works with. */
export interface TellerCollaborators {
  readonly clients: readonly AdminClient[];
  readonly steering: Steering;
  /** Tells the person at the terminal. */
  readonly say: (line: string) => void;
  /** Called when something else is asked than before. */
  readonly onAsk: () => void;
}

const TELL_EVERY_MS = 1_000;
/** How long the end of a rollout waits for a gateway that does not answer. */
const LAST_MS = 5_000;
/** The gateway takes a body of 64 KiB. */
const MAX_REPORT_BYTES = 48 * 1024;
const MAX_STEPS = 24;
/** Reports of all runs of a rollout are in one order. */
const RUN_FACTOR = 1_000_000_000;

/** What a replica of an earlier run is shown as until something happens to it. */
const FIRST_PHASES: Readonly<Partial<Record<ReplicaFacts['stage'], Phase>>> = {
  waiting: 'waiting',
  done: 'done',
  skipped: 'done',
};

/** One gateway, and what it has been told. */
interface Listener {
  readonly client: AdminClient;
  /** The number of the last report that it has answered. */
  toldSeq: number;
  /** False: it is of a version that knows nothing of rollouts. */
  isAble: boolean;
}

/**
 * Tells the gateways how a rollout is, once per second, and hears what others ask of it. A gateway that does not answer holds
 * up nothing; one that has forgotten the rollout is told all of it.
 */
export class RolloutTeller {
  readonly #head: RolloutHead;
  readonly #collaborators: TellerCollaborators;
  readonly #listeners: readonly Listener[];
  readonly #replicas: Map<string, ReplicaFacts>;
  readonly #ended = new AbortController();
  #state: RolloutState = { state: 'running', sentence: 'begins', problem: null };
  #endedAt: string | null = null;
  #seq: number;
  #telling: Promise<void> = Promise.resolve();

  /** `replicas`: in their order, as far as they are. */
  constructor(
    head: RolloutHead,
    replicas: readonly Pick<ReplicaFacts, 'name' | 'stage' | 'text'>[],
    collaborators: TellerCollaborators,
  ) {
    this.#head = head;
    this.#collaborators = collaborators;
    this.#seq = head.run * RUN_FACTOR;
    this.#listeners = collaborators.clients.map((client) => ({ client, toldSeq: 0, isAble: true }));
    const since = new Date().toISOString();
    const begun = { seq: this.#seq, since, verdict: null, figures: {}, steps: [] };
    const toFacts = (replica: Pick<ReplicaFacts, 'name' | 'stage' | 'text'>): ReplicaFacts => ({
      ...begun,
      ...replica,
      phase: FIRST_PHASES[replica.stage] ?? 'stopped',
    });
    this.#replicas = new Map(replicas.map((replica) => [replica.name, toFacts(replica)]));
  }

  /**
   * Tells that it begins, and goes on telling. `signal`: wait for no gateway any more. Throws a StartError if a gateway refuses
   * it: nothing must begin then.
   */
  async begin(signal: AbortSignal): Promise<void> {
    try {
      for (const listener of this.#listeners) await this.#tellOne(listener, signal);
    } catch (error) {
      // The gateways that took it must not wait for it.
      this.set({ state: 'aborted', sentence: 'nothing was done: another gateway refused it', problem: null });
      await this.end();
      throw error;
    }
    this.#telling = this.#goOn();
  }

  /** A replica has reached a stage. */
  reach(name: string, stage: ReplicaFacts['stage']): void {
    this.#change(name, { stage });
  }

  /** A replica is in a phase. */
  show(name: string, phase: Phase, text: string, figures?: Figures): void {
    const isSame = this.#replicas.get(name)?.phase === phase;
    this.#change(name, {
      phase,
      text,
      ...(isSame ? {} : { since: new Date().toISOString() }),
      ...(figures === undefined ? {} : { figures }),
    });
  }

  /** A step of a replica has ended. */
  addStep(name: string, step: EndedStep, figures: Figures): void {
    const { steps = [] } = this.#replicas.get(name) ?? {};
    const { outcome } = step;
    const isVerdict = outcome === 'good' || outcome === 'bad' || outcome === 'undecided';
    this.#change(name, {
      steps: [...steps, step].slice(-MAX_STEPS),
      ...(isVerdict ? { verdict: outcome, figures } : {}),
    });
  }

  /** How the rollout is as a whole. */
  set(state: RolloutState): void {
    this.#state = state;
    const isUnderWay = state.state === 'running' || state.state === 'paused';
    this.#endedAt = isUnderWay ? null : new Date().toISOString();
  }

  /** Tells how it ended. Never rejects: nobody may listen any more. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#telling;
    if (this.#collaborators.steering.ending?.kind === 'taken_over') return;
    const deadline = AbortSignal.timeout(LAST_MS);
    await Promise.all(
      this.#listeners.map(async (listener) => {
        while (!deadline.aborted) {
          const isHeard = await this.#tellOne(listener, deadline).catch(() => true);
          if (isHeard) return;
          await sleep(TELL_EVERY_MS / 4, undefined, { signal: deadline }).catch(() => undefined);
        }
      }),
    );
  }

  async #goOn(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await sleep(TELL_EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await Promise.all(this.#listeners.map((listener) => this.#tellOne(listener).catch(() => false)));
    }
  }

  #change(name: string, changes: Partial<ReplicaFacts>): void {
    const before = this.#replicas.get(name);
    this.#seq += 1;
    if (before !== undefined) this.#replicas.set(name, { ...before, ...changes, seq: this.#seq });
  }

  /** Returns whether the gateway has heard all. Throws a StartError if it refuses the rollout. */
  async #tellOne(listener: Listener, signal?: AbortSignal): Promise<boolean> {
    if (!listener.isAble) return true;
    this.#seq += 1;
    const seq = this.#seq;
    const changed = [...this.#replicas.values()].filter((replica) => replica.seq > listener.toldSeq);
    try {
      for (const replicas of toParts(changed)) {
        const answer = await this.#report(listener.client, seq, replicas, signal);
        if (memberOf(answer, 'complete') === true || changed.length === this.#replicas.size) continue;
        // It has restarted without what it knew.
        listener.toldSeq = 0;
        return false;
      }
      listener.toldSeq = seq;
      return true;
    } catch (error) {
      if (error instanceof UnreachableError) return false;
      const refusal = this.#toRefusal(error, listener);
      if (refusal === null) return true;
      throw refusal;
    }
  }

  async #report(
    client: AdminClient,
    seq: number,
    replicas: readonly ReplicaFacts[],
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const { steering, say, onAsk } = this.#collaborators;
    const facts: RolloutFacts = {
      ...this.#head,
      ...this.#state,
      seq,
      ended_at: this.#endedAt,
      ask: steering.ask,
      replica_count: this.#replicas.size,
      replicas,
    };
    const answer = await client.call('POST', `/admin/rollouts/${this.#head.id}/report`, signal, facts);
    const ask = readAsk(answer);
    if (ask !== null && steering.hear(ask)) {
      say(toHeardText(ask.kind, ask.by));
      onAsk();
    }
    return answer;
  }

  #toRefusal(error: unknown, listener: Listener): unknown {
    if (!(error instanceof RefusedError)) return error;
    const { code, reason } = error;
    if (code === 'not_found') {
      listener.isAble = false;
      this.#collaborators.say(`${listener.client.baseUrl} is older: it does not show this rollout to others`);
      return null;
    }
    const refusal = new StartError(`nothing was begun: ${toOneLine(reason)}`, error);
    if (listener.toldSeq === 0) {
      // What it has never known, it need not know the end of.
      listener.isAble = false;
      return refusal;
    }
    const { steering } = this.#collaborators;
    if (code === 'rollout_taken_over') steering.refuse('taken_over', toOneLine(reason));
    else if (code.startsWith('rollout_')) steering.refuse('refused', toOneLine(reason));
    return refusal;
  }
}

function toHeardText(kind: 'go' | 'pause' | 'abort', by: string | null): string {
  const who = by === null ? 'somebody' : toOneLine(by);
  if (kind === 'go') return `goes on: ${who} has asked for it`;
  return kind === 'pause'
    ? `pauses: ${who} has asked for it. What is under way goes to its end`
    : `is aborted: ${who} has asked for it`;
}

/** Reports are no longer than a gateway takes. There is one at least. */
function toParts(replicas: readonly ReplicaFacts[]): readonly (readonly ReplicaFacts[])[] {
  const parts: ReplicaFacts[][] = [[]];
  let sizeBytes = 0;
  for (const replica of replicas) {
    const bytes = Buffer.byteLength(JSON.stringify(replica));
    if (sizeBytes + bytes > MAX_REPORT_BYTES) {
      parts.push([]);
      sizeBytes = 0;
    }
    sizeBytes += bytes;
    parts.at(-1)?.push(replica);
  }
  return parts;
}
