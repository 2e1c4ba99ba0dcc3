import { isDeepStrictEqual } from 'node:util';
import { inParallel } from './in-parallel.ts';
import { probeModels } from './probe.ts';
import type { RegisteredReplica } from './registry.ts';

/** Replicas that are asked at the same time. */
const PARALLEL_PROBES = 32;

/** Learns what replicas serve, and on which engine, where the configuration says `auto`. */
export class ModelDiscovery {
  readonly #timeoutMs: number;
  readonly #onLearned: () => void;
  readonly #underWay = new Map<RegisteredReplica, Promise<void>>();

  /** `onLearned`: called when a replica told something that was not known before. */
  constructor(timeoutMs: number, onLearned: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onLearned = onLearned;
  }

  /**
   * Asks those of the replicas whose answer could tell something. Resolves when each has answered or failed to; one
   * that failed stays known as it was.
   */
  async ask(replicas: readonly RegisteredReplica[]): Promise<void> {
    const askable = replicas.filter(({ config }) => config.models === 'auto' || config.engine === 'auto');
    await inParallel(askable, PARALLEL_PROBES, (replica) => this.#ask(replica));
  }

  /** Whoever asks while an answer is awaited waits for the same one. */
  #ask(replica: RegisteredReplica): Promise<void> {
    const begun = this.#underWay.get(replica);
    if (begun !== undefined) return begun;
    const probe = this.#probe(replica).finally(() => this.#underWay.delete(replica));
    this.#underWay.set(replica, probe);
    return probe;
  }

  async #probe(replica: RegisteredReplica): Promise<void> {
    const found = await probeModels(replica, this.#timeoutMs);
    if (found === null) return;
    const before = replica.knowledge;
    replica.learn(found);
    if (!isDeepStrictEqual(replica.knowledge, before)) this.#onLearned();
  }
}
