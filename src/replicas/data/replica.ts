import { hash } from 'node:crypto';
import type { Engine, ReplicaConfig } from '../../config/config.ts';
import type { DeadlineClock } from '../../http/deadline-clock.ts';
import type { UpstreamConnection } from '../../http/upstream-connection.ts';
import type { UpstreamConnections } from '../../http/upstream-connections.ts';
import { type HealthLog, logFailing, logOk } from '../control/health-log.ts';
import type { ReplicaSnapshot } from '../pool-snapshot.ts';
import type { SharedState } from '../shared/shared-state.ts';
import { type ConnectionTimeouts, pathPrefixOf } from './connections.ts';
import { createUpstreamConnections } from './upstream.ts';

/** What every replica of a pool is given. */
export interface ReplicaCollaborators {
  readonly shared: SharedState;
  /** The worker that this thread is: the row in which its requests in flight are counted. */
  readonly worker: number;
  readonly timeouts: ConnectionTimeouts;
  readonly clock: DeadlineClock;
  readonly log: HealthLog;
  /** Told of a defect of ours that ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/**
 * One inference server as the proxy sees it: what is configured and known of it, the flags that all threads share,
 * and the connections of this one. Whoever sends to it holds a lease of the pool.
 */
export class Replica {
  readonly slot: number;
  /** 32 bits of its name's digest: the same in every thread and gateway. */
  readonly seed: number;
  /** Path prefix of the configured url, without a trailing slash; often empty. */
  readonly pathPrefix: string;
  /** What the Host field of requests says. */
  readonly hostField: string;
  /** Whether it is known to take include_usage: its engine does, or it has streamed with it. */
  acceptsIncludeUsage = false;
  readonly #with: ReplicaCollaborators;
  #facts: ReplicaSnapshot;
  #upstream: UpstreamConnections;
  #isRetired = false;
  readonly #fingerprints = new WeakMap<UpstreamConnection, { text: Buffer | null }>();

  constructor(facts: ReplicaSnapshot, surroundings: ReplicaCollaborators) {
    this.slot = facts.slot;
    this.seed = hash('sha256', facts.config.name, 'buffer').readInt32BE();
    this.pathPrefix = pathPrefixOf(facts.config.url);
    this.hostField = new URL(facts.config.url).host;
    this.#upstream = createUpstreamConnections(facts.config, surroundings);
    this.#facts = facts;
    this.#with = surroundings;
  }

  get name(): string {
    return this.#facts.config.name;
  }

  get config(): ReplicaConfig {
    return this.#facts.config;
  }

  /** Null while the list is not known. */
  get models(): readonly string[] | null {
    return this.#facts.knowledge.models;
  }

  /** The engine whose wire habits apply; `openai` while it is not known. */
  get engine(): Engine {
    return this.#facts.knowledge.engine ?? 'openai';
  }

  /** The engine's release, where its habits depend on it; null while it is not known. */
  get engineVersion(): string | null {
    return this.#facts.knowledge.engineVersion;
  }

  /** Requests in flight on it, of all threads. */
  get inflight(): number {
    return this.#with.shared.inflightOf(this.slot);
  }

  /** Whether it takes no new requests. Read again in the tick that writes one. */
  get isDrained(): boolean {
    return this.#with.shared.isDrained(this.slot);
  }

  /** Whether it is tried only when none of the others can be. */
  get isFailing(): boolean {
    return this.#with.shared.health.isFailing(this.slot);
  }

  /** Whether it fails, and the present request is to find out whether it still does. */
  claimRetry(): boolean {
    return this.#with.shared.health.claimRetry(this.slot);
  }

  /** Notes that a request could not connect to it. */
  noteRefused(why: 'unreachable' | 'loading' = 'unreachable'): void {
    this.#with.shared.noteReachability(this.slot, why);
    if (this.#with.shared.health.noteRefused(this.slot)) logFailing(this.#with.log, this.name, 'connections');
  }

  /** Notes that it began a response. */
  noteAnswered(): void {
    this.#with.shared.noteReachability(this.slot, 'reachable');
    if (this.#with.shared.health.noteAnswered(this.slot)) logOk(this.#with.log, this.name);
  }

  /**
   * The replica answered 400 or 422 to `stream_options` and took the request without it, or compresses its
   * streams: usage is not asked for in the name of clients who do not ask.
   */
  get refusesIncludeUsage(): boolean {
    return this.#with.shared.refusesIncludeUsage(this.slot);
  }

  set refusesIncludeUsage(refuses: boolean) {
    this.#with.shared.setRefusesIncludeUsage(this.slot, refuses);
  }

  /**
   * The `system_fingerprint` member that came on this connection last, as it was written. A connection ends in one
   * process, which has one fingerprint; the next may end in its successor.
   */
  fingerprintOf(connection: UpstreamConnection): { text: Buffer | null } {
    let fingerprint = this.#fingerprints.get(connection);
    if (fingerprint === undefined) {
      fingerprint = { text: null };
      this.#fingerprints.set(connection, fingerprint);
    }
    return fingerprint;
  }

  /** The connections of this thread to it. */
  get upstream(): UpstreamConnections {
    return this.#upstream;
  }

  /** Takes over what a later topology says of it. */
  update(facts: ReplicaSnapshot): void {
    this.#facts = facts;
  }

  /** From now on requests go on connections of other time-outs; those under way go on as they are. */
  reconnect(timeouts: ConnectionTimeouts): void {
    this.#upstream.retire();
    this.#upstream = createUpstreamConnections(this.#facts.config, { ...this.#with, timeouts });
  }

  /** It is not among the replicas any more: its connections are closed when nothing of this thread is in flight. */
  retire(): void {
    const { shared, worker } = this.#with;
    this.#isRetired = true;
    if (shared.inflightOfWorker(worker, this.slot) === 0) this.#upstream.destroy();
  }

  /**
   * Whether a request may be sent to it: it is below its `max_inflight`, and nobody waits for it who came before this
   * ticket. Null: a request that has not waited.
   */
  hasRoomFor(ticket: number | null): boolean {
    const { maxInflight } = this.config;
    if (maxInflight === null) return true;
    return this.inflight < maxInflight && !this.#with.shared.waiting.isAwaited(this.slot, ticket);
  }

  /** Counts one request more in flight, unless that would be more than its `max_inflight`: then answers false. */
  tryBegin(): boolean {
    return this.#with.shared.beginInflight(this.#with.worker, this.slot, this.config.maxInflight);
  }

  /** Counts one request more in flight, however many there are. */
  begin(): void {
    this.#with.shared.beginInflight(this.#with.worker, this.slot, null);
  }

  /** Counts one request less in flight. */
  finish(): void {
    const rest = this.#with.shared.endInflight(this.#with.worker, this.slot);
    if (rest === 0 && this.#isRetired) this.#upstream.destroy();
  }
}
