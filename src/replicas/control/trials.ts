import type { Log } from '#otel/base';
import type { HealthAction } from '#replicas/health';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';

/** What became of a shadow for a while: see `AdminAction` of otel/span. */
export interface TrialAction extends Pick<HealthAction, 'replica' | 'startEpochMs'> {
  readonly action: 'shadow_begins' | 'shadow_ends';
  readonly share: number;
  readonly tokenName: string | null;
}

interface TrialsCollaborators {
  readonly log: Log<'info'>;
  readonly onAction: (action: TrialAction) => void;
  /** Lets the turns of a replica that is not drained grow, if ramps are on. */
  readonly beginRamp: (name: string) => void;
  /** Resolves when every worker knows of the change. */
  readonly republish: () => Promise<void>;
}

/** Makes replicas shadows for a while, and ends that. */
export class Trials {
  readonly #collaborators: TrialsCollaborators;
  readonly #running = new Map<string, { readonly timer: NodeJS.Timeout; readonly begun: TrialAction }>();

  constructor(collaborators: TrialsCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Those that are, as they were told. */
  get running(): readonly TrialAction[] {
    return Array.from(this.#running.values(), ({ begun }) => begun);
  }

  /**
   * Makes a replica a shadow for a while. Resolves when no worker sends it a client's request any more. The caller has
   * made sure that others serve its models. `tokenName`: who did it; null: nobody, it ends by itself.
   */
  async begin(
    replica: RegisteredReplica,
    share: number,
    forMs: number,
    tokenName: string | null,
  ): Promise<void> {
    const { trial, name } = replica;
    const nowMs = Date.now();
    replica.setTrial({
      share,
      since: trial?.since ?? new Date(nowMs).toISOString(),
      until: new Date(nowMs + forMs).toISOString(),
      ignoresDrain: trial?.ignoresDrain ?? replica.drain.drained,
    });
    const known = this.#running.get(name);
    clearTimeout(known?.timer);
    const timer = setTimeout(() => void this.end(replica, null), forMs).unref();
    if (trial?.share === share && known !== undefined) {
      this.#running.set(name, { ...known, timer });
      return;
    }
    this.#noteEnd(name, tokenName);
    const begun = { action: 'shadow_begins', replica: name, share, tokenName, startEpochMs: nowMs } as const;
    this.#running.set(name, { timer, begun });
    this.#collaborators.log.info({ replica: name, share, token_name: tokenName }, 'shadow begins');
    this.#collaborators.onAction(begun);
    await this.#collaborators.republish();
  }

  /** Ends that. A replica that is not drained serves again, with a growing share of the turns if `rollout.ramp` says so. */
  async end(replica: RegisteredReplica, tokenName: string | null): Promise<void> {
    replica.shadowEndCount += 1;
    if (replica.trial === null) return;
    replica.setTrial(null);
    this.#noteEnd(replica.name, tokenName);
    if (replica.shadow === null) this.#collaborators.beginRamp(replica.name);
    await this.#collaborators.republish();
  }

  /** Forgets those that were removed, or are other servers now. */
  forgetRemoved(registry: ReplicaRegistry): void {
    for (const name of this.#running.keys()) if (!registry.find(name)?.trial) this.#noteEnd(name, null);
  }

  /** None ends by itself any more. */
  stop(): void {
    for (const { timer } of this.#running.values()) clearTimeout(timer);
  }

  #noteEnd(name: string, tokenName: string | null): void {
    const known = this.#running.get(name);
    if (known === undefined) return;
    clearTimeout(known.timer);
    this.#running.delete(name);
    this.#collaborators.log.info({ replica: name, token_name: tokenName }, 'shadow ends');
    this.#collaborators.onAction({ ...known.begun, action: 'shadow_ends', tokenName });
  }
}
