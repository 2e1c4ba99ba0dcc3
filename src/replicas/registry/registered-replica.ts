import { isDeepStrictEqual } from 'node:util';
import type { Pool } from 'undici';
import { createProbeConnections, pathPrefixOf } from '#replicas';
import type { DrainState } from '#replicas/drain-state';
import type { Drains } from '#replicas/drains';
import type { GpuTime } from '#replicas/gpu-time';
import type { Health } from '#replicas/health-state';
import type { RampProgress } from '#replicas/ramps';
import { type Finding, NOT_SEEN, type ReachabilityState } from '#replicas/reachability';
import type { SharedState } from '#replicas/shared';
import type { BackgroundCount, Engine, ReplicaConfig, ReplicaKnowledge, ShadowRole } from '#replicas/terms';
import type { BackgroundCounts } from './background-counts.ts';

/** What replicas and their registry work with. */
export interface RegistryCollaborators {
  readonly shared: SharedState;
  readonly background: BackgroundCounts;
  readonly drains: Drains;
}

/** A replica that serves is a shadow for a while. */
export interface ShadowTrial {
  readonly share: number;
  /** When it began: RFC 3339. */
  readonly since: string;
  /** When it ends by itself: RFC 3339. */
  readonly until: string;
  /** Whether it was drained when it became one, and is tried in spite of that. */
  readonly ignoresDrain: boolean;
}

/** The streams of a replica that have been without a byte for longer than those of its peers make likely. */
export interface SilentStreams {
  readonly count: number;
  /** The streams that run, silent or not. */
  readonly running: number;
  /** For how long nothing has come on the one that is silent for longest; null: none is. */
  readonly oldestMs: number | null;
}

/** One replica as the control plane knows it: its configuration, what probes have found, and its present state. */
export class RegisteredReplica {
  readonly slot: number;
  readonly pathPrefix: string;
  /** Since when it is known: monotonic. */
  readonly knownSinceMs = performance.now();
  /** How often somebody has called for the end of its time as a shadow, whether it was one or not. */
  shadowEndCount = 0;
  #connections: Pool;
  /** How long they may take to open. */
  #connectMs: number;
  readonly #collaborators: RegistryCollaborators;
  #config: ReplicaConfig;
  #found: ReplicaKnowledge = { models: null, engine: null, engineVersion: null };
  #trial: ShadowTrial | null = null;
  #roleSinceMs = Number.NEGATIVE_INFINITY;
  #removal: { readonly at: string; readonly isApplied: boolean } | null = null;

  constructor(slot: number, config: ReplicaConfig, connectMs: number, collaborators: RegistryCollaborators) {
    this.slot = slot;
    this.pathPrefix = pathPrefixOf(config.url);
    this.#connections = createProbeConnections(config, connectMs);
    this.#connectMs = connectMs;
    this.#collaborators = collaborators;
    this.#config = config;
    collaborators.shared.gpuTimes.configure(slot, config);
  }

  /** For probes only. Requests of clients use the connections of the workers. */
  get connections(): Pool {
    return this.#connections;
  }

  get name(): string {
    return this.#config.name;
  }

  get config(): ReplicaConfig {
    return this.#config;
  }

  /** What is configured, and what probes have found where the configuration says `auto`. */
  get knowledge(): ReplicaKnowledge {
    const { models, engine } = this.#config;
    return {
      models: models === 'auto' ? this.#found.models : models,
      engine: engine === 'auto' ? this.#found.engine : engine,
      engineVersion: this.#found.engineVersion,
    };
  }

  /** Null while its model list is unknown. */
  get models(): readonly string[] | null {
    return this.knowledge.models;
  }

  /** The engine; `openai` while it is unknown. */
  get engine(): Engine {
    return this.knowledge.engine ?? 'openai';
  }

  /** Whether models and engine are known, so that a probe of /v1/models is not urgent. */
  get isFullyKnown(): boolean {
    return this.models !== null && this.knowledge.engine !== null;
  }

  /** How it is a shadow; null: it serves clients. */
  get shadow(): ShadowRole | null {
    if (this.#trial !== null) return this.#trial;
    return this.#config.role === 'shadow' ? { share: null, ignoresDrain: false } : null;
  }

  /** How it is a shadow for a while; null: it is what its configuration says. */
  get trial(): ShadowTrial | null {
    return this.#trial;
  }

  /** Since when it is known, and a shadow or none: monotonic. */
  get roleSinceMs(): number {
    return Math.max(this.#roleSinceMs, this.knownSinceMs);
  }

  /** When it was last drained or undrained, became a shadow or ceased to be one: monotonic; -Infinity: never, as is known. */
  get changedMs(): number {
    return Math.max(this.#roleSinceMs, this.#collaborators.drains.changedMsOf(this.name));
  }

  /** Makes it a shadow for a while, or ends that. Workers learn of it by the next snapshot. */
  setTrial(trial: ShadowTrial | null): void {
    if ((trial === null) !== (this.#trial === null)) this.#roleSinceMs = performance.now();
    this.#trial = trial;
  }

  /** The drain state of its name. A removed replica counts as drained, because it takes no requests either. */
  get drain(): DrainState {
    const state = this.#collaborators.drains.stateOf(this.name);
    return this.#removal === null
      ? state
      : { ...state, drained: true, since: this.#removal.at, reason: 'removed' };
  }

  /** Whether its name is drained, whatever else is known of it. */
  get hasDrainedName(): boolean {
    return this.#collaborators.drains.stateOf(this.name).drained;
  }

  /** Whether it was removed and finishes its requests. */
  get isRemoving(): boolean {
    return this.#removal !== null;
  }

  /** Its health; null while it is drained, and if health checks are off. */
  get health(): Health | null {
    return this.drain.drained ? null : this.#collaborators.shared.health.healthOf(this.slot);
  }

  /** What requests and probes have shown; unknown while it is drained. */
  get reachability(): ReachabilityState {
    return this.drain.drained ? NOT_SEEN : this.#collaborators.shared.reachability.stateOf(this.slot);
  }

  /** Whether it has ever answered a request or a probe. */
  get hasAnswered(): boolean {
    return this.#collaborators.shared.reachability.hasAnswered(this.slot);
  }

  /** Notes what a probe has shown. `isEngine`: also, that it is an inference server. */
  noteFinding(finding: Finding, isEngine = false): void {
    this.#collaborators.shared.reachability.note(this.slot, finding, isEngine);
  }

  /** How far its ramp is; null: it gets an even share of the turns, or none. */
  get ramp(): RampProgress | null {
    return this.drain.drained ? null : this.#collaborators.shared.ramps.progressOf(this.slot);
  }

  /** Requests in flight, of all workers. */
  get inflight(): number {
    return this.#collaborators.shared.heldOf(this.slot);
  }

  /** Its running streams, of all workers, and which of them are silent. */
  get silence(): SilentStreams {
    const { silences } = this.#collaborators.shared;
    const { running, silent, oldestMs } = silences.streamsOf(this.slot);
    const ageMs = oldestMs === null ? null : Math.max(0, Math.round(silences.nowMs() - oldestMs));
    return { count: silent, running, oldestMs: ageMs };
  }

  /** Whether a part of a response has come from it, on any worker, in the last so many milliseconds that workers sampled. */
  hasSentWithin(ms: number): boolean {
    const { silences } = this.#collaborators.shared;
    const [heardMs, asOfMs] = [silences.heardOf(this.slot), silences.oldestSampleMs];
    return heardMs !== null && asOfMs !== null && asOfMs - heardMs < ms;
  }

  /** The responses that it goes on with after its answer. */
  get background(): BackgroundCount {
    const { shared, background } = this.#collaborators;
    // In this order: what is handed over meanwhile counts twice, never not at all.
    const handedOver = shared.handedOverOf(this.slot);
    const { running, unknown } = background.of(this.config);
    return { running: running + handedOver, unknown };
  }

  /** Its GPU time up to now, and what that costs; null without a `gpu_count`. */
  get gpuTime(): GpuTime | null {
    return this.#config.gpuCount ? this.#collaborators.shared.gpuTimes.timeOf(this.slot) : null;
  }

  /**
   * Whether it is drained, has no requests in flight and goes on with no response; null while a worker has not confirmed
   * the drain, or while it is not known whether a response goes on. A lease is counted before the drained flag is read for
   * the last time, so no request can follow those that are in flight once the drain is confirmed. A response that goes on
   * is counted before its request ceases to be in flight.
   */
  get isSafeToStop(): boolean | null {
    if (!this.drain.drained || this.inflight > 0) return false;
    const { running, unknown } = this.background;
    if (running > 0) return false;
    if (unknown > 0) return null;
    const isKnown = this.#removal?.isApplied ?? this.#collaborators.drains.isConfirmed(this.name);
    return isKnown ? true : null;
  }

  /** Takes over what a probe has found; the rest stays as it is. */
  learn(found: Partial<ReplicaKnowledge>): void {
    this.#found = { ...this.#found, ...found };
  }

  /** Takes over another configuration of the same server. */
  configure(config: ReplicaConfig): void {
    if (config.role !== this.#config.role) this.#roleSinceMs = performance.now();
    const hasOtherTls = !isDeepStrictEqual(config.tls, this.#config.tls);
    this.#config = config;
    this.#collaborators.shared.gpuTimes.configure(this.slot, config);
    if (hasOtherTls) this.reconnect(this.#connectMs);
  }

  /** Probes it on new connections, which may take so long to open. A probe in flight ends on the old ones. */
  reconnect(connectMs: number): void {
    void this.#connections.close();
    this.#connections = createProbeConnections(this.#config, connectMs);
    this.#connectMs = connectMs;
  }

  /** Removes it, at a time in RFC 3339. */
  remove(at: string): void {
    this.#removal = { at, isApplied: false };
    void this.#connections.destroy();
    // It is still asked for the responses that it goes on with.
    this.#connections = createProbeConnections(this.#config, this.#connectMs);
  }

  /** Notes that every worker uses a snapshot without it, so that it gets no further requests. */
  forget(): void {
    if (this.#removal !== null) this.#removal = { ...this.#removal, isApplied: true };
    this.#collaborators.drains.unbind(this.name, this.slot);
    this.#collaborators.shared.setDrained(this.slot, true);
  }
}
