import type { Observation } from '../../verdict/observation.ts';
import { type AdminClient, itemsOf, memberOf, RefusedError, UnreachableError } from '../admin/client.ts';
import { callDrain } from '../admin/drain-call.ts';
import { toOneLine } from '../terminal/table.ts';
import { toObservation } from './compare/to-observation.ts';
import { RolloutStop } from './stop.ts';

/** A replica as one gateway, or all of them together, see it. */
export interface ReplicaView {
  readonly name: string;
  readonly url: string;
  readonly host: string;
  /** Null: unknown. */
  readonly models: readonly string[] | null;
  readonly isDrained: boolean;
  readonly inflight: number;
  readonly isSafeToStop: boolean;
  readonly isReachable: boolean;
  /** Found unreachable or loading. */
  readonly isAway: boolean;
  /** Of an even share of the turns: below 1 while it is on a ramp. */
  readonly share: number;
}

/** Whether a replica is ready to serve, and a phrase why not. */
export interface Readiness {
  readonly state: 'ready' | 'away' | 'unknown';
  readonly problem: string;
}

/** The requests that have ended since the look before. */
export interface Followed {
  readonly observations: readonly Observation[];
  /** How many of them are not known, because the gateway did not keep them for so long. */
  readonly missed: number;
  /** `prefix_affinity` if any gateway has this policy. */
  readonly policy: string;
}

/** The gateways of a rollout. One is enough for a fleet; gateways that share nothing are all needed. */
export class RolloutGateways {
  readonly #clients: readonly AdminClient[];
  readonly #signal: AbortSignal;

  constructor(clients: readonly AdminClient[], signal: AbortSignal) {
    this.#clients = clients;
    this.#signal = signal;
  }

  /**
   * The replicas, in the order of the first gateway. One that several gateways have is drained, safe to stop or reachable
   * only if all of them say so.
   */
  async replicas(): Promise<readonly ReplicaView[]> {
    const views = new Map<string, ReplicaView>();
    for (const client of this.#clients) {
      const answer = await client.call('GET', '/admin/replicas', this.#signal);
      for (const item of itemsOf(answer, 'replicas')) {
        const view = toView(item);
        if (view === null) continue;
        const known = views.get(view.name);
        views.set(view.name, known === undefined ? view : merge(known, view));
      }
    }
    return [...views.values()];
  }

  /** Drains on every gateway. `last_replica` becomes a RolloutStop, as do drains that are not stored. */
  async drain(name: string, { reason, isForced }: { reason: string; isForced: boolean }): Promise<void> {
    for (const client of this.#clients) {
      const call = { name, action: 'drain', reason, unlessLast: !isForced } as const;
      await this.#change(client, call);
    }
  }

  async undrain(name: string, { reason, ramp }: { reason: string; ramp: string }): Promise<void> {
    for (const client of this.#clients) await this.#change(client, { name, action: 'undrain', reason, ramp });
  }

  /** Whether a replica is ready to serve. The first gateway asks it. */
  async probe(name: string, hasCompletion: boolean): Promise<Readiness> {
    const path = `/admin/replicas/${encodeURIComponent(name)}/probe?completion=${hasCompletion}`;
    try {
      const answer = await this.#first.call('POST', path, this.#signal);
      if (memberOf(answer, 'ready') === true) return { state: 'ready', problem: '' };
      const problem = memberOf(answer, 'problem');
      return { state: 'away', problem: typeof problem === 'string' ? toOneLine(problem) : 'it is not ready' };
    } catch (error) {
      if (error instanceof UnreachableError) {
        return { state: 'unknown', problem: 'the gateway does not answer' };
      }
      // A replica behind a DNS name is away until the name has it again.
      if (error instanceof RefusedError && error.code === 'replica_not_found') {
        return { state: 'away', problem: 'it is not a replica of the gateway now' };
      }
      throw error;
    }
  }

  /** Begins to follow the requests: each look returns those that have ended since the look before. */
  async follow(): Promise<() => Promise<Followed>> {
    const followed = this.#clients.map((client) => ({ client, last: 0, startedAt: undefined as unknown }));
    // What ended before is not followed. A gateway that does not answer now begins later.
    await this.#lookAtAll(followed).catch((error: unknown) => {
      if (!(error instanceof UnreachableError)) throw error;
    });
    return () => this.#lookAtAll(followed);
  }

  async #lookAtAll(followed: readonly FollowedGateway[]): Promise<Followed> {
    const looks: Followed[] = [];
    for (const each of followed) {
      // An answer holds so many at most.
      for (;;) {
        const look = await this.#look(each);
        Object.assign(each, { last: look.last, startedAt: look.startedAt });
        looks.push(look);
        if (look.observations.length < FULL_ANSWER) break;
      }
    }
    return {
      observations: looks.flatMap(({ observations }) => observations),
      missed: looks.reduce((sum, { missed }) => sum + missed, 0),
      policy: looks.some(({ policy }) => policy === 'prefix_affinity') ? 'prefix_affinity' : 'other',
    };
  }

  /** Records the span of a step through the first gateway. Never rejects: a trace is no reason to stop. */
  async record(query: URLSearchParams): Promise<void> {
    await this.#first.call('POST', `/admin/rollout-steps?${query}`).catch(() => undefined);
  }

  get #first(): AdminClient {
    const [first] = this.#clients;
    if (first === undefined) throw new Error('a rollout has a gateway');
    return first;
  }

  async #change(client: AdminClient, call: Parameters<typeof callDrain>[1]): Promise<void> {
    const retry = { maxMs: RETRY_MS, signal: this.#signal, onRetry: () => undefined };
    let answer: unknown;
    try {
      answer = await callDrain(client, call, retry);
    } catch (error) {
      if (error instanceof RefusedError) throw new RolloutStop('failed', toOneLine(error.reason));
      throw error;
    }
    if (memberOf(answer, 'overtaken') === true) {
      throw new RolloutStop('failed', `somebody else has changed it: the ${call.action} did not last`);
    }
    if (memberOf(answer, 'stored') === false) {
      throw new RolloutStop(
        'failed',
        `the ${call.action} is not stored: a restart of the gateway forgets it`,
      );
    }
  }

  async #look({ client, last, startedAt }: FollowedGateway) {
    const answer = await client.call('GET', `/admin/observations?after=${last}`, this.#signal);
    const present = memberOf(answer, 'started_at');
    // The numbers of a gateway that has restarted began again.
    const isNew = startedAt !== undefined && present !== startedAt;
    const valid = isNew ? await client.call('GET', '/admin/observations', this.#signal) : answer;
    const isFirst = startedAt === undefined;
    return {
      observations: isFirst
        ? []
        : itemsOf(valid, 'observations').flatMap((item) => toObservation(item) ?? []),
      last: Number(memberOf(valid, 'last')) || 0,
      missed: isFirst || isNew ? 0 : Number(memberOf(valid, 'missed')) || 0,
      policy: String(memberOf(valid, 'routing_policy')),
      startedAt: present,
    };
  }
}

/** A gateway whose requests are followed: the number of the last one, and when it started; undefined before a look. */
interface FollowedGateway {
  readonly client: AdminClient;
  readonly last: number;
  readonly startedAt: unknown;
}

/** The most requests in an answer of the gateway. */
const FULL_ANSWER = 10_000;

/** How long a call is repeated that the gateway does not answer, for example while it restarts. */
const RETRY_MS = 120_000;

/** Null: it is none. */
function toView(item: unknown): ReplicaView | null {
  const name = memberOf(item, 'name');
  if (typeof name !== 'string' || memberOf(item, 'removing') === true) return null;
  const models = memberOf(item, 'models');
  const reachability = memberOf(item, 'reachability');
  const share = memberOf(memberOf(item, 'ramp'), 'share');
  return {
    name,
    url: String(memberOf(item, 'url')),
    host: String(memberOf(item, 'host')),
    models: Array.isArray(models) ? models.map(String) : null,
    isDrained: memberOf(item, 'drained') === true,
    inflight: Number(memberOf(item, 'inflight')) || 0,
    isSafeToStop: memberOf(item, 'safe_to_stop') === true,
    isReachable: reachability === 'reachable',
    isAway: reachability === 'unreachable' || reachability === 'loading',
    share: typeof share === 'number' ? share : 1,
  };
}

function merge(a: ReplicaView, b: ReplicaView): ReplicaView {
  return {
    ...a,
    models: a.models ?? b.models,
    isDrained: a.isDrained && b.isDrained,
    inflight: a.inflight + b.inflight,
    isSafeToStop: a.isSafeToStop && b.isSafeToStop,
    isReachable: a.isReachable && b.isReachable,
    isAway: a.isAway || b.isAway,
    share: Math.min(a.share, b.share),
  };
}
