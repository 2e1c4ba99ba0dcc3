import type { ReplicaConfig } from '#replicas/terms';
import { type BackgroundCount, NO_BACKGROUND } from '#replicas/terms';

/** Which server: a name that moves to another url is another one. */
export type BackgroundServer = Pick<ReplicaConfig, 'name' | 'url'>;

/** The responses that servers go on with, by server: whether a replica is configured at the moment makes no difference. */
export class BackgroundCounts {
  readonly #counts = new Map<string, BackgroundCount>();

  of(server: BackgroundServer): BackgroundCount {
    return this.#counts.get(serverKeyOf(server)) ?? NO_BACKGROUND;
  }

  set(server: BackgroundServer, count: BackgroundCount): void {
    const key = serverKeyOf(server);
    if (count.running + count.unknown === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

/** Names have no line feed. */
export function serverKeyOf({ name, url }: BackgroundServer): string {
  return `${name}\n${url}`;
}
