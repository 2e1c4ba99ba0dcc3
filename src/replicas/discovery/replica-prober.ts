import { isDeepStrictEqual } from 'node:util';
import { inParallel } from '#base';
import { memberOf, parseJson } from '#base/parsed';
import {
  isHealthy,
  type ProbeAnswer,
  type ProbeResult,
  parseModelList,
  probe,
  toHealthFinding,
  toListFinding,
} from '#replicas/probes';
import type { Finding } from '#replicas/reachability';
import type { RegisteredReplica } from '#replicas/registry';
import type { ReplicaKnowledge } from '#replicas/terms';
import type { ReachabilityLog } from './reachability-log.ts';

/** Replicas that are probed at the same time. The requests that wait meanwhile wait for as many answers. */
const PARALLEL_PROBES = 16;

const MAX_LIST_BYTES = 1024 * 1024;
const MAX_VERSION_BYTES = 4096;

/** The release in a vLLM's version; what follows it names the build. */
const RELEASE = /^\d{1,4}\.\d{1,4}\.\d{1,4}/;

export interface ReplicaProberCollaborators {
  /** Requests the configured health path from a replica. */
  readonly probeHealth: (replica: RegisteredReplica, timeoutMs: number) => Promise<ProbeResult>;
  readonly log: ReachabilityLog;
  /** Called when a replica's answer was new. */
  readonly onLearned: () => void;
}

/**
 * Finds out whether replicas answer; which models and which engine they have, where the configuration says `auto`; and
 * a vLLM's release.
 */
export class ReplicaProber {
  readonly #timeoutMs: number;
  readonly #collaborators: ReplicaProberCollaborators;
  readonly #underWay = new Map<RegisteredReplica, Promise<void>>();
  #isStopped = false;

  /** @param timeoutMs how long a replica may take to answer */
  constructor(timeoutMs: number, collaborators: ReplicaProberCollaborators) {
    this.#timeoutMs = timeoutMs;
    this.#collaborators = collaborators;
  }

  /**
   * Probes replicas. Resolves when each has answered or failed; the known models and engine of one that failed do not
   * change.
   */
  async ask(replicas: readonly RegisteredReplica[]): Promise<void> {
    await inParallel(replicas, PARALLEL_PROBES, (replica) => this.#ask(replica));
  }

  /** Notes and logs nothing from now on. */
  stop(): void {
    this.#isStopped = true;
    this.#collaborators.log.stop();
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
    const result = await this.#probeList(replica);
    const isBusy = isSilent(result) && replica.hasSentWithin(performance.now() - startedMs);
    if (isBusy && replica.reachability.state === 'reachable') return;
    const listing = isOk(result) ? parseModelList(result.text) : null;
    if (listing !== null) this.#learn(replica, listing);
    await this.#note(replica, result, listing !== null);
    if (result.kind === 'failure') return;
    if (listing === null && (models === 'auto' || engine === 'auto')) return;
    if (replica.knowledge.engine !== 'vllm') {
      this.#learn(replica, { engineVersion: null });
      return;
    }
    const restMs = Math.max(1, this.#timeoutMs - (performance.now() - startedMs));
    const engineVersion = await probeVersion(replica, restMs);
    // Without an answer the last known release stays.
    if (engineVersion !== null) this.#learn(replica, { engineVersion });
  }

  /** Sends GET /v1/models; once more to a replica that answered before and is silent now: it may only be busy. */
  async #probeList(replica: RegisteredReplica): Promise<ProbeResult> {
    const ask = () =>
      probeJson(replica, { path: '/v1/models', maxBytes: MAX_LIST_BYTES, timeoutMs: this.#timeoutMs });
    const result = await ask();
    return isSilent(result) && replica.reachability.state === 'reachable' ? await ask() : result;
  }

  /** Notes and logs what the answer to GET /v1/models has shown of a replica. */
  async #note(replica: RegisteredReplica, listResult: ProbeResult, hasList: boolean): Promise<void> {
    // A drained replica may be about to stop.
    const isOver = () => this.#isStopped || replica.drain.drained;
    if (isOver()) return;
    const [finding, result] = await this.#judge(replica, listResult, hasList);
    if (isOver()) return;
    const before = replica.reachability.reason;
    replica.noteFinding(finding, hasList);
    // A server that has served requests is an engine, whatever it says to this probe.
    const now = replica.reachability.reason ?? 'reachable';
    this.#collaborators.log.note(replica, { before, now, result });
  }

  /** The finding, and the result that shows it: sometimes that of another probe, for the health path. */
  async #judge(
    replica: RegisteredReplica,
    result: ProbeResult,
    hasList: boolean,
  ): Promise<readonly [Finding, ProbeResult]> {
    const finding = result.kind === 'failure' ? result.reason : toListFinding(result, hasList);
    const isDoubtful = hasList ? mayFailDespiteList(replica) : mayServeWithoutList(replica, finding);
    if (!isDoubtful) return [finding, result];
    const health = await this.#collaborators.probeHealth(replica, this.#timeoutMs);
    if (!hasList) {
      const isOk = health.kind === 'answer' && isHealthy(health);
      return isOk ? ['reachable', health] : [finding, result];
    }
    return [health.kind === 'failure' ? health.reason : toHealthFinding(health), health];
  }

  #learn(replica: RegisteredReplica, found: Partial<ReplicaKnowledge>): void {
    const before = replica.knowledge;
    replica.learn(found);
    if (!isDeepStrictEqual(replica.knowledge, before)) this.#collaborators.onLearned();
  }
}

function isSilent(result: ProbeResult): boolean {
  return result.kind === 'failure' && result.reason === 'no_answer';
}

/** llama.cpp lists its model while it loads it; a server whose engine has died may still list its models. */
function mayFailDespiteList({ engine, reachability: { state } }: RegisteredReplica): boolean {
  return engine === 'llamacpp' || state === 'unreachable' || state === 'loading';
}

/** Some servers of embeddings have no list. They need none if their models are configured. */
function mayServeWithoutList({ config }: RegisteredReplica, finding: Finding): boolean {
  return finding === 'not_an_engine' && config.models !== 'auto';
}

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
  const version = memberOf(answer, 'version');
  return typeof version === 'string' ? (RELEASE.exec(version)?.[0] ?? null) : null;
}
