import { isDeepStrictEqual } from 'node:util';
import type { ReplicaKnowledge } from '../../pool-snapshot.ts';
import { inParallel } from '../in-parallel.ts';
import { probeModels, probeVersion } from '../probe.ts';
import type { RegisteredReplica } from '../registry.ts';

/** Replicas that are asked at the same time. */
const PARALLEL_PROBES = 32;

/** Learns what replicas serve, and on which engine, where the configuration says `auto`; and the release of a vLLM. */
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
    const askable = replicas.filter(
      ({ config: { models, engine } }) => models === 'auto' || engine === 'auto' || engine === 'vllm',
    );
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
    const startedMs = performance.now();
    const { models, engine } = replica.config;
    if (models === 'auto' || engine === 'auto') {
      const listed = await probeModels(replica, this.#timeoutMs);
      if (listed === null) return;
      this.#learn(replica, listed);
    }
    if (replica.knowledge.engine !== 'vllm') {
      this.#learn(replica, { engineVersion: null });
      return;
    }
    const restMs = Math.max(1, this.#timeoutMs - (performance.now() - startedMs));
    const engineVersion = await probeVersion(replica, restMs);
    // One that does not tell this time is taken for what it was.
    if (engineVersion !== null) this.#learn(replica, { engineVersion });
  }

  #learn(replica: RegisteredReplica, found: Partial<ReplicaKnowledge>): void {
    const before = replica.knowledge;
    replica.learn(found);
    if (!isDeepStrictEqual(replica.knowledge, before)) this.#onLearned();
  }
}
