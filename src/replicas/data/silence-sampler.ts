import { type FrozenAfter, type SilenceTable, toSampleMs } from '#replicas/shared';
import type { DeadlineClock, UpstreamConnections } from '#wire';

/** What a sampler reads and writes. */
export interface SilenceSamplerCollaborators {
  readonly table: SilenceTable;
  readonly worker: number;
  readonly clock: DeadlineClock;
  readonly replicas: () => Iterable<SampledReplica>;
}

interface SampledReplica {
  readonly slot: number;
  readonly upstream: Pick<UpstreamConnections, 'observeSilence'>;
}

/**
 * Notes for all threads how long each replica has been silent on this thread's connections. It looks at the connections
 * now and then, so that requests and their chunks do no work for it.
 */
export class SilenceSampler {
  readonly #collaborators: SilenceSamplerCollaborators;
  #frozenAfterMs: FrozenAfter | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(collaborators: SilenceSamplerCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Samples often enough for this duration; null: not at all. */
  configure(frozenAfterMs: FrozenAfter | null): void {
    if (frozenAfterMs === this.#frozenAfterMs) return;
    this.stop();
    this.#frozenAfterMs = frozenAfterMs;
    const { table, worker } = this.#collaborators;
    if (frozenAfterMs === null) {
      table.clearWorker(worker);
      return;
    }
    // After a stall, bytes may already be in the sockets. They are read before immediates run.
    this.#timer = setInterval(() => setImmediate(() => this.sample()), toSampleMs(frozenAfterMs));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Notes what is to be seen now. */
  sample(): void {
    const { table, worker, clock, replicas } = this.#collaborators;
    const offsetMs = table.nowMs() - clock.nowMs();
    const toShared = (ms: number | null) => (ms === null ? null : ms + offsetMs);
    for (const { slot, upstream } of replicas()) {
      const { heardMs, waitingSinceMs } = upstream.observeSilence();
      table.note(worker, slot, { heardMs: toShared(heardMs), waitingSinceMs: toShared(waitingSinceMs) });
    }
    table.noteSampled(worker);
  }
}
