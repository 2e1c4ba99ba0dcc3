import { isDeepStrictEqual } from 'node:util';
import type { Engine } from '../../../config/config.ts';
import type { ReplicaKnowledge } from '../../pool-snapshot.ts';
import { toListFinding } from '../../reachability.ts';
import { inParallel } from '../in-parallel.ts';
import { type ProbeAnswer, type ProbeResult, probe } from '../probe.ts';
import type { RegisteredReplica } from '../registry.ts';

/** Replicas that are probed at the same time. */
const PARALLEL_PROBES = 32;

const MAX_LIST_BYTES = 1024 * 1024;
const MAX_VERSION_BYTES = 4096;

/** The release in a vLLM's version; what follows it names the build. */
const RELEASE = /^\d{1,4}\.\d{1,4}\.\d{1,4}/;

/** The engine by `owned_by` in /v1/models. All others are treated as `openai`; TGI must be configured. */
const ENGINE_OF_OWNER: ReadonlyMap<unknown, Engine> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llamacpp'],
  ['library', 'ollama'],
]);

/** Finds out which models and which engine replicas have, where the configuration says `auto`; and a vLLM's release. */
export class ModelDiscovery {
  readonly #timeoutMs: number;
  readonly #onLearned: () => void;
  readonly #underWay = new Map<RegisteredReplica, Promise<void>>();

  /** @param onLearned called when a replica's answer was new */
  constructor(timeoutMs: number, onLearned: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onLearned = onLearned;
  }

  /**
   * Probes those of the replicas whose answer is of use. Resolves when each has answered or failed; what is known of
   * one that failed does not change.
   */
  async ask(replicas: readonly RegisteredReplica[]): Promise<void> {
    const askable = replicas.filter(
      ({ config: { models, engine } }) => models === 'auto' || engine === 'auto' || engine === 'vllm',
    );
    await inParallel(askable, PARALLEL_PROBES, (replica) => this.#ask(replica));
  }

  /** Probes a replica, or waits for the probe that is under way. */
  #ask(replica: RegisteredReplica): Promise<void> {
    const begun = this.#underWay.get(replica);
    if (begun !== undefined) return begun;
    const asking = this.#probe(replica).finally(() => this.#underWay.delete(replica));
    this.#underWay.set(replica, asking);
    return asking;
  }

  async #probe(replica: RegisteredReplica): Promise<void> {
    const startedMs = performance.now();
    const { models, engine } = replica.config;
    if (models === 'auto' || engine === 'auto') {
      const listing = await this.#probeModels(replica);
      if (listing === null) return;
      this.#learn(replica, listing);
    }
    if (replica.knowledge.engine !== 'vllm') {
      this.#learn(replica, { engineVersion: null });
      return;
    }
    const restMs = Math.max(1, this.#timeoutMs - (performance.now() - startedMs));
    const engineVersion = await probeVersion(replica, restMs);
    // Without an answer the last known release stays.
    if (engineVersion !== null) this.#learn(replica, { engineVersion });
  }

  /** Sends GET /v1/models, and notes whether it was answered. Null without a model list. */
  async #probeModels(replica: RegisteredReplica): Promise<ModelListing | null> {
    const result = await probeJson(replica, {
      path: '/v1/models',
      ...{ maxBytes: MAX_LIST_BYTES, timeoutMs: this.#timeoutMs },
    });
    const listing = isOk(result) ? parseModelList(result.text) : null;
    // A drained replica may be about to stop.
    if (!replica.drain.drained) {
      const hasList = listing !== null;
      replica.noteFinding(
        result.kind === 'failure' ? result.reason : toListFinding(result, hasList),
        hasList,
      );
    }
    return listing;
  }

  #learn(replica: RegisteredReplica, found: Partial<ReplicaKnowledge>): void {
    const before = replica.knowledge;
    replica.learn(found);
    if (!isDeepStrictEqual(replica.knowledge, before)) this.#onLearned();
  }
}

/** What a model list shows. */
type ModelListing = Pick<ReplicaKnowledge, 'models' | 'engine'>;

/** Sends GET /version to a vLLM. Null without an answer of status 200 that has a release. */
async function probeVersion(replica: RegisteredReplica, timeoutMs: number): Promise<string | null> {
  const result = await probeJson(replica, { path: '/version', maxBytes: MAX_VERSION_BYTES, timeoutMs });
  return isOk(result) ? parseVersion(result.text) : null;
}

function probeJson(
  replica: RegisteredReplica,
  request: { readonly path: string; readonly maxBytes: number; readonly timeoutMs: number },
): Promise<ProbeResult> {
  return probe(replica, {
    ...request,
    accept: 'application/json',
    // 503: an engine may say that it is loading its model.
    isWanted: (status) => status === 200 || status === 503,
    onLongBody: 'ignore',
  });
}

function isOk(result: ProbeResult): result is ProbeAnswer {
  return result.kind === 'answer' && result.status === 200;
}

/** Parses the answer to GET /version: the three numbers of the release, or null. */
function parseVersion(text: string): string | null {
  const answer = parseJson(text);
  const version = isObject(answer) ? answer.version : undefined;
  return typeof version === 'string' ? (RELEASE.exec(version)?.[0] ?? null) : null;
}

/** Parses the answer to GET /v1/models; null if it is not a list of models. */
export function parseModelList(text: string): ModelListing | null {
  const list = parseJson(text);
  const data = isObject(list) ? list.data : undefined;
  if (!Array.isArray(data)) return null;
  const entries = data.filter(isObject);
  // In the configuration `*` means any name. A replica that lists it must not attract the prompts meant for others.
  const models = entries.map((entry) => entry.id).filter((id) => typeof id === 'string');
  const owner = entries.map((entry) => entry.owned_by).find((owned) => typeof owned === 'string');
  return { models: models.filter((id) => id !== '*'), engine: ENGINE_OF_OWNER.get(owner) ?? 'openai' };
}

/** Undefined for invalid JSON. V8's error message quotes the input, so it is not passed on. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
