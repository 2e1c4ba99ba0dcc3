import { type BackgroundCount, NO_BACKGROUND, type ReplicaConfig } from '#replicas/terms';

/** Which server: a name that moves to another url is another one. */
export type BackgroundServer = Pick<ReplicaConfig, 'name' | 'url'>;

/** What a server goes on with, when the first one without a record came, when all are over the limit (monotonic): in ms. */
interface ServerCount extends BackgroundServer {
  readonly count: BackgroundCount;
  readonly sinceEpochMs: number;
  readonly untilMs: number;
}

/** The responses that servers go on with, by server: whether a replica is configured at the moment makes no difference. */
export class BackgroundCounts {
  readonly #counts = new Map<string, ServerCount>();

  of(server: BackgroundServer): BackgroundCount {
    return this.#counts.get(serverKeyOf(server))?.count ?? NO_BACKGROUND;
  }

  /** The servers that go on with something. */
  get all(): Iterable<BackgroundServer & { readonly count: BackgroundCount }> {
    return this.#counts.values();
  }

  /** When all of them are over the limit: monotonic milliseconds. 0: there are none. */
  get untilMs(): number {
    return Math.max(0, ...this.#counts.values().map(({ untilMs }) => untilMs));
  }

  /** How long ago the request of the oldest one without a record arrived, in milliseconds; 0: there is none. */
  get oldestMs(): number {
    const nowMs = Date.now();
    return nowMs - Math.min(nowMs, ...this.#counts.values().map(({ sinceEpochMs }) => sinceEpochMs));
  }

  set({ name, url }: BackgroundServer, count: BackgroundCount, sinceEpochMs: number, untilMs: number): void {
    const key = serverKeyOf({ name, url });
    if (count.running + count.unknown === 0 && sinceEpochMs === Infinity) this.#counts.delete(key);
    else this.#counts.set(key, { name, url, count, sinceEpochMs, untilMs });
  }
}

/** Names have no line feed. */
export function serverKeyOf({ name, url }: BackgroundServer): string {
  return `${name}\n${url}`;
}
