import type { Engine, ReplicaConfig } from '../config/config.ts';
import { type Connections, createConnections } from './connections.ts';

/** What GET /v1/models told of a replica, or the configuration before any probe. */
export interface ReplicaKnowledge {
  /** `null`: not known yet. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
  /** `null`: not known yet; treated as `openai`. */
  readonly engine: Engine | null;
}

/** Whether a replica takes new requests, and since when. */
export interface DrainState {
  readonly drained: boolean;
  /** RFC 3339 of the last drain or undrain; `null` if there was none. */
  readonly since: string | null;
}

/**
 * One inference server: what is configured and known of it, its drain state, its requests in flight and
 * its connections. Whoever sends to it holds a lease of the pool.
 */
export class Replica {
  readonly config: ReplicaConfig;
  /** Path prefix of the configured url, without a trailing slash; often empty. */
  readonly pathPrefix: string;
  readonly connections: Connections;
  drain: DrainState = { drained: false, since: null };
  inflight = 0;
  /**
   * The replica answered 400 or 422 to `stream_options` and took the request without it, or compresses its
   * streams: usage is not asked for in the name of clients who do not ask.
   */
  refusesIncludeUsage = false;
  /** The `system_fingerprint` member of its last usage chunk, as it was written; null while none was seen. */
  readonly fingerprint: { text: Buffer | null } = { text: null };
  #knowledge: ReplicaKnowledge;

  constructor(
    config: ReplicaConfig,
    timeouts: { readonly connectMs: number; readonly upstreamKeepAliveMs: number },
  ) {
    this.config = config;
    const url = new URL(config.url);
    this.pathPrefix = url.pathname === '/' ? '' : url.pathname.replace(/\/$/, '');
    this.connections = createConnections(url.origin, timeouts);
    this.#knowledge = {
      models: config.models === 'auto' ? null : config.models,
      engine: config.engine === 'auto' ? null : config.engine,
    };
  }

  get name(): string {
    return this.config.name;
  }

  get models(): readonly string[] | null {
    return this.#knowledge.models;
  }

  /** The engine whose wire habits apply; `openai` while it is not known. */
  get engine(): Engine {
    return this.#knowledge.engine ?? 'openai';
  }

  /** Whether a probe of /v1/models could still tell something the configuration leaves open. */
  get isFullyKnown(): boolean {
    return this.#knowledge.models !== null && this.#knowledge.engine !== null;
  }

  /** Takes over what a probe found, for those facts that the configuration leaves to `auto`. */
  learn(found: ReplicaKnowledge): void {
    this.#knowledge = {
      models: this.config.models === 'auto' ? found.models : this.config.models,
      engine: this.config.engine === 'auto' ? found.engine : this.config.engine,
    };
  }
}
