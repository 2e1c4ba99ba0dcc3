import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { GpuShare } from '#replicas/gpu-time';
import type { HealthDecision } from '#replicas/health-state';
import { type ReachabilityReason, toConnectionReason, toReachability } from '#replicas/reachability';
import type { SharedState } from '#replicas/shared';
import type { Engine, ReplicaConfig, ReplicaSnapshot, ShadowRole } from '#replicas/terms';
import type { DeadlineClock } from '#wire';
import {
  copyToKeep,
  type SharedReads,
  type UpstreamConnection,
  type UpstreamConnections,
} from '#wire/upstream';
import { type ConnectionTimeouts, pathPrefixOf } from './connections.ts';
import { createUpstreamConnections } from './upstream.ts';

/** What every replica of a pool works with. */
export interface ReplicaCollaborators {
  readonly shared: SharedState;
  /** This thread's worker, for which its requests in flight are counted. */
  readonly worker: number;
  readonly clock: DeadlineClock;
  readonly sharedReads: SharedReads;
  /** Called when requests show that a replica fails, or that it does not any more. */
  readonly onHealth: (decision: HealthDecision) => void;
  /** Called with a defect of the gateway that ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/**
 * One inference server as the proxy sees it: what is configured and known of it, the state that all threads share, and
 * the connections of this thread. Only the holder of a lease may send to it.
 */
export class Replica {
  readonly slot: number;
  /** 32 bits of the digest of its name: the same in every thread and gateway. */
  readonly seed: number;
  /** Path prefix of the configured url, without a trailing slash; often empty. */
  readonly pathPrefix: string;
  /** The Host field of requests to it. */
  readonly hostField: string;
  readonly #collaborators: ReplicaCollaborators;
  #snapshot: ReplicaSnapshot;
  #timeouts: ConnectionTimeouts;
  #upstream: UpstreamConnections;
  /** Those before: they have no requests but those that were in flight. */
  #formerUpstreams: readonly UpstreamConnections[] = [];
  #isRetired = false;
  #acceptsIncludeUsage = false;
  readonly #fingerprints = new WeakMap<UpstreamConnection, Fingerprint>();

  constructor(snapshot: ReplicaSnapshot, timeouts: ConnectionTimeouts, collaborators: ReplicaCollaborators) {
    this.slot = snapshot.slot;
    this.seed = hash('sha256', snapshot.config.name, 'buffer').readInt32BE();
    this.pathPrefix = pathPrefixOf(snapshot.config.url);
    this.hostField = new URL(snapshot.config.url).host;
    this.#upstream = createUpstreamConnections(snapshot.config, { ...collaborators, timeouts });
    this.#timeouts = timeouts;
    this.#snapshot = snapshot;
    this.#collaborators = collaborators;
  }

  get name(): string {
    return this.#snapshot.config.name;
  }

  get config(): ReplicaConfig {
    return this.#snapshot.config;
  }

  /** Null while its model list is unknown. */
  get models(): readonly string[] | null {
    return this.#snapshot.knowledge.models;
  }

  /** The engine, which decides details of the wire format; `openai` while it is unknown. */
  get engine(): Engine {
    return this.#snapshot.knowledge.engine ?? 'openai';
  }

  /**
   * Whether it may take a member's name in another case for its own, as encoding/json of Go does: Ollama, and engines
   * that nobody has named and the gateway does not recognise.
   */
  get mayFoldCase(): boolean {
    const isUnrecognised = this.config.engine === 'auto' && this.engine === 'openai';
    return this.engine === 'ollama' || isUnrecognised;
  }

  /** The engine's release, where the wire format depends on it; null while it is unknown. */
  get engineVersion(): string | null {
    return this.#snapshot.knowledge.engineVersion;
  }

  /** How it is a shadow; null: it serves clients. Read again in the tick that writes a client's request. */
  get shadow(): ShadowRole | null {
    return this.#snapshot.shadow;
  }

  /** Whether it takes no clients' requests, because it is drained or a shadow. */
  get isClosed(): boolean {
    return this.shadow !== null || this.isDrained;
  }

  /** Whether its share of the turns grows. */
  get isOnRamp(): boolean {
    return this.#collaborators.shared.ramps.progressOf(this.slot) !== null;
  }

  /** Requests in flight, of all threads. */
  get inflight(): number {
    return this.#collaborators.shared.inflightOf(this.slot);
  }

  /** Whether it takes no new requests. Read again in the tick that writes one. */
  get isDrained(): boolean {
    return this.#collaborators.shared.isDrained(this.slot);
  }

  /** Whether it has ever answered a request or a probe. */
  get hasAnswered(): boolean {
    return this.#collaborators.shared.reachability.hasAnswered(this.slot);
  }

  /** Whether it fails, and so is tried only when no other candidate can be. */
  get isFailing(): boolean {
    return this.#collaborators.shared.health.isFailing(this.slot);
  }

  /** Whether the last thing that was found out is that it does not answer. */
  get isUnreachable(): boolean {
    const finding = this.#collaborators.shared.reachability.findingOf(this.slot);
    return finding !== null && toReachability(finding) === 'unreachable';
  }

  /** Whether it fails and the present request must find out whether it still does. */
  claimRetry(): boolean {
    return this.#collaborators.shared.health.claimRetry(this.slot, this.inflight);
  }

  /** Notes that a request could not connect, because of this error. */
  noteNotConnected(error: unknown): void {
    this.#noteRefused(toConnectionReason(error, this.config.url.startsWith('https:')));
  }

  /** Notes that the engine was still loading its model. */
  noteLoading(): void {
    this.#noteRefused('loading_model');
  }

  #noteRefused(reason: ReachabilityReason): void {
    const { shared } = this.#collaborators;
    shared.reachability.note(this.slot, reason);
    if (shared.health.noteRefused(this.slot)) this.#decide('failing');
  }

  /** Notes that it began a response with this status. `isInference`: to more than a request for its models. */
  noteAnswered(status: number, isInference: boolean): void {
    const { shared } = this.#collaborators;
    shared.reachability.noteAnswered(this.slot, status, isInference);
    if (shared.health.noteAnswered(this.slot)) this.#decide('ok');
  }

  #decide(verdict: HealthDecision['verdict']): void {
    this.#collaborators.onHealth({ replica: this.name, judge: 'connections', verdict, forMs: 0 });
  }

  /** Whether it has streamed a response to a request with `include_usage`, on this thread. */
  get acceptsIncludeUsage(): boolean {
    return this.#acceptsIncludeUsage;
  }

  /** Whether the gateway must not add `include_usage` to requests of clients that do not ask for usage. */
  get refusesIncludeUsage(): boolean {
    return this.#collaborators.shared.refusesIncludeUsage(this.slot);
  }

  /** Notes that it streams a response to a request with `include_usage`. */
  noteUsageAccepted(): void {
    this.#acceptsIncludeUsage = true;
  }

  /** Notes that it answered 400 or 422 to `stream_options`, and served the same request without it. */
  noteUsageRefused(): void {
    this.#collaborators.shared.noteUsageRefused(this.slot);
  }

  /** Notes that it compresses a stream although it was asked not to: an added usage chunk cannot be removed. */
  noteStreamCompressed(): void {
    this.#collaborators.shared.noteUsageRefused(this.slot);
  }

  /**
   * The fingerprint that came on this connection. A connection ends in one server process, which has one fingerprint;
   * the next connection may end in its successor.
   */
  fingerprintOf(connection: UpstreamConnection): Fingerprint {
    let fingerprint = this.#fingerprints.get(connection);
    if (fingerprint === undefined) {
      fingerprint = new Fingerprint();
      this.#fingerprints.set(connection, fingerprint);
    }
    return fingerprint;
  }

  /** This thread's connections to it. */
  get upstream(): UpstreamConnections {
    return this.#upstream;
  }

  /** The same, and those before that still have requests. */
  get upstreams(): readonly UpstreamConnections[] {
    return [this.#upstream, ...this.#formerUpstreams.filter(({ hasOpen }) => hasOpen)];
  }

  /** Takes over a later snapshot of it. New requests use new connections if its certificates have changed. */
  update(snapshot: ReplicaSnapshot): void {
    const { tls } = this.config;
    this.#snapshot = snapshot;
    if (!isDeepStrictEqual(tls, snapshot.config.tls)) this.reconnect(this.#timeouts);
  }

  /** Sends new requests on new connections with these timeouts. Requests in flight keep theirs. */
  reconnect(timeouts: ConnectionTimeouts): void {
    this.#timeouts = timeouts;
    this.#upstream.retire();
    this.#formerUpstreams = this.upstreams.filter(({ hasOpen }) => hasOpen);
    this.#upstream = createUpstreamConnections(this.config, { ...this.#collaborators, timeouts });
  }

  /** Whether this thread has requests in flight on it. */
  get isBusy(): boolean {
    const { shared, worker } = this.#collaborators;
    return shared.inflightOfWorker(worker, this.slot) > 0;
  }

  /** Notes that it was removed. Closes its connections once this thread has no request in flight on it. */
  retire(): void {
    this.#isRetired = true;
    if (!this.isBusy) this.#upstream.destroy();
  }

  /**
   * Whether it is below its `max_inflight` and no request with an earlier ticket waits for it. Null: the request has
   * not waited.
   */
  hasRoomFor(ticket: number | null): boolean {
    const { maxInflight } = this.config;
    if (maxInflight === null) return true;
    const { waiting } = this.#collaborators.shared;
    return this.inflight < maxInflight && !waiting.hasEarlierWaiter(this.slot, ticket);
  }

  /** Counts a request in flight and returns true, or returns false if it is at its `max_inflight`. */
  tryBegin(): boolean {
    const { shared, worker } = this.#collaborators;
    return shared.beginInflight(worker, this.slot, this.config.maxInflight);
  }

  /** Counts a copy in flight and returns true, or returns false if so many are, or it is at its `max_inflight`. */
  tryBeginCopy(limit: number): boolean {
    const { shared, worker } = this.#collaborators;
    return shared.beginInflight(worker, this.slot, Math.min(limit, this.config.maxInflight ?? limit));
  }

  /** Counts a request in flight, whatever its `max_inflight`. */
  begin(): void {
    const { shared, worker } = this.#collaborators;
    shared.beginInflight(worker, this.slot, null);
  }

  /** It goes on with a response after its answer: the main thread follows it from here on. */
  handOver(): void {
    const { shared, worker } = this.#collaborators;
    shared.handOver(worker, this.slot);
  }

  /** Begins a lease's share of its GPU time; null if it has no `gpu_count`. */
  beginGpuShare(): GpuShare | null {
    const { shared, worker } = this.#collaborators;
    return this.config.gpuCount ? new GpuShare(shared.gpuTimes, worker, this.slot) : null;
  }

  /** Counts a request that ended. */
  finish(): void {
    const { shared, worker } = this.#collaborators;
    const rest = shared.endInflight(worker, this.slot);
    if (rest === 0 && this.#isRetired) this.#upstream.destroy();
  }
}

/** The `system_fingerprint` member that a server process sends in every stream, key included, as it was written. */
export class Fingerprint {
  #text: Buffer | null = null;

  /** Null until a stream has shown it. */
  get text(): Buffer | null {
    return this.#text;
  }

  /** Notes what a stream has shown; the bytes are copied. */
  note(text: Buffer): void {
    if (this.#text?.equals(text)) return;
    this.#text = copyToKeep(text);
  }
}
