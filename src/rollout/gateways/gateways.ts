import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, callDrain, callVerdict, RefusedError, UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import { RolloutStop } from '../stop.ts';
import { mergeViews, type ReplicaView, toView } from './replica-view.ts';

/** Whether a replica is ready to serve, and a phrase why not. */
export interface Readiness {
  readonly state: 'ready' | 'away' | 'unknown';
  readonly problem: string;
}

/** What the gateways say of a replica. */
export type GatewayFinding = Awaited<ReturnType<typeof callVerdict>>;

/** A drain that the gateways have refused: they are as before. */
export class DrainRefused extends RolloutStop {
  constructor(message: string) {
    super('failed', message);
    this.name = 'DrainRefused';
  }
}

/** How long a call is repeated that the gateway does not answer, for example while it restarts. */
const RETRY_MS = 120_000;

/** The gateways of a rollout. One is enough for a fleet; gateways that share nothing are all needed. */
export class RolloutGateways {
  readonly #clients: readonly AdminClient[];
  readonly #signal: AbortSignal;

  constructor(clients: readonly AdminClient[], signal: AbortSignal) {
    this.#clients = clients;
    this.#signal = signal;
  }

  /** The replicas, in the order of the first gateway, as all gateways together see them. */
  async replicas(): Promise<readonly ReplicaView[]> {
    const views = new Map<string, ReplicaView>();
    for (const client of this.#clients) {
      const answer = await client.call('GET', '/admin/replicas', this.#signal);
      for (const item of itemsOf(answer, 'replicas')) {
        const view = toView(item);
        if (view === null) continue;
        const known = views.get(view.name);
        views.set(view.name, known === undefined ? view : mergeViews(known, view));
      }
    }
    return [...views.values()];
  }

  /**
   * Drains on every gateway. Resolves with what they warn of. Throws a DrainRefused if one of them refuses and the others
   * are as before, and a RolloutStop or an UnreachableError if the replica may be drained now.
   */
  async drain(
    name: string,
    { reason, isForced }: { reason: string; isForced: boolean },
  ): Promise<readonly string[]> {
    const drained: AdminClient[] = [];
    const warnings = new Set<string>();
    for (const client of this.#clients) {
      const call = { name, action: 'drain', reason, unlessLast: !isForced } as const;
      try {
        const { wasDrained, warning } = await this.#change(client, call);
        if (!wasDrained) drained.push(client);
        if (warning !== null) warnings.add(warning);
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        for (const each of drained) await this.#change(each, { name, action: 'undrain', reason, ramp: '0s' });
        throw new DrainRefused(toOneLine(error.reason));
      }
    }
    return [...warnings];
  }

  /** Keeps a replica drained, for another reason. Throws as `drain` does. */
  async changeReason(name: string, reason: string): Promise<void> {
    await this.drain(name, { reason, isForced: true });
  }

  /** Undrains on every gateway. */
  async undrain(name: string, { reason, ramp }: { reason: string; ramp: string }): Promise<void> {
    for (const client of this.#clients) {
      try {
        await this.#change(client, { name, action: 'undrain', reason, ramp });
      } catch (error) {
        if (error instanceof RefusedError) throw new RolloutStop('failed', toOneLine(error.reason));
        throw error;
      }
    }
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

  /** Asks every gateway whether a replica is as good as its peers since it was last undrained. */
  judge(name: string, peers: readonly string[], falseAlarm: number): Promise<GatewayFinding> {
    const question = { candidate: name, baseline: peers.join(','), since: null, falseAlarm };
    return callVerdict(this.#clients, question, this.#signal);
  }

  /** Sends copies of this share of live requests to a replica, from every gateway, for the next minute. */
  async beginShadow(name: string, share: string): Promise<void> {
    const query = new URLSearchParams({ requests: share, for: '60s' });
    const path = `/admin/replicas/${encodeURIComponent(name)}/shadow?${query}`;
    for (const client of this.#clients) await client.call('POST', path, this.#signal);
  }

  /** Ends that. What a gateway does not answer, it ends by itself. */
  async endShadow(name: string): Promise<void> {
    const path = `/admin/replicas/${encodeURIComponent(name)}/unshadow`;
    for (const client of this.#clients) await client.call('POST', path).catch(() => undefined);
  }

  /** Asks every gateway whether the answers of a shadow are as good as those that clients get. */
  judgeShadow(name: string, falseAlarm: number): Promise<GatewayFinding> {
    const question = { candidate: name, baseline: null, since: null, falseAlarm, tolerance: '5%' };
    return callVerdict(this.#clients, question, this.#signal);
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

  /** Throws a RefusedError, an UnreachableError, or a RolloutStop for a change that did not last or is not stored. */
  async #change(
    client: AdminClient,
    call: Parameters<typeof callDrain>[1],
  ): Promise<{ readonly wasDrained: boolean; readonly warning: string | null }> {
    const retry = { maxMs: RETRY_MS, signal: this.#signal, onRetry: () => undefined };
    const answer = await callDrain(client, call, retry);
    if (memberOf(answer, 'overtaken') === true) {
      throw new RolloutStop('failed', `somebody else has changed it: the ${call.action} did not last`);
    }
    if (memberOf(answer, 'stored') === false) {
      throw new RolloutStop(
        'failed',
        `the ${call.action} is in force but not stored: a restart of the gateway forgets it`,
      );
    }
    const warning = memberOf(answer, 'warning');
    return {
      wasDrained: memberOf(answer, 'was_drained') === true,
      warning: typeof warning === 'string' ? toOneLine(warning) : null,
    };
  }
}
