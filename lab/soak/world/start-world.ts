import { join } from 'node:path';
import { type RedisLink, type RedisServer, startRedisServer } from '#testkit/servers/redis-server.ts';
import { Journal } from '../journal.ts';
import type { RequestKind } from '../requests.ts';
import { createKey, type SoakGateway, startSoakGateway } from './gateways.ts';
import { type Replicas, startReplicas } from './replicas.ts';
import { type SpanCollector, startSpanCollector } from './span-collector.ts';

/** So few that the client is refused now and then, wherever its requests are counted. */
const LIMITED = { requests_per_minute: 120 };

/** Everything that a soak runs: two gateways of a fleet with what is around them. */
export interface World extends AsyncDisposable {
  /** The first has two workers and asks for keys. */
  readonly gateways: readonly [SoakGateway, SoakGateway];
  readonly replicas: Replicas;
  readonly collector: SpanCollector;
  /** The file of the collector. */
  readonly recordFile: string;
  readonly redis: RedisServer;
  /** Those of the gateways to Redis, in their order. */
  readonly links: readonly [RedisLink, RedisLink];
  readonly journal: Journal;
  readonly keys: Keys;
}

/** The API keys of the clients. */
export class Keys {
  readonly #limited = createKey('limited', LIMITED);
  #count = 0;
  #valid = this.create();

  /** The value of `clients`, with these beside the valid key. */
  toClients(...more: readonly object[]): readonly object[] {
    return [this.#limited.entry, this.#valid.entry, ...more];
  }

  /** A further key, of the same tenant: its stored responses stay its own. */
  create() {
    return createKey(`team-${this.#count++}`, { tenant: 'team' });
  }

  /** The key that clients send from now on. Returns the former one. */
  use(key: ReturnType<typeof createKey>) {
    const former = this.#valid;
    this.#valid = key;
    return former;
  }

  keyFor(kind: RequestKind['key']): string {
    if (kind === 'wrong') return 'sk-of-nobody';
    return kind === 'limited' ? this.#limited.key : this.#valid.key;
  }
}

/** Starts all of it. `folder`: for configurations, state and records. */
export async function startWorld(folder: string): Promise<World> {
  await using cleanUp = new AsyncDisposableStack();
  const journal = new Journal();
  const keys = new Keys();
  const recordFile = join(folder, 'records.jsonl.zst');
  const collector = cleanUp.use(await startSpanCollector(recordFile));
  const replicas = cleanUp.use(await startReplicas(journal));
  const redis = cleanUp.use(await startRedisServer());
  const links = [await redis.openLink(), await redis.openLink()] as const;
  const start = async (name: string, workers: number, link: RedisLink, own: object) => {
    const shared = { folder, collectorUrl: collector.url, replicas: replicas.list };
    const gateway = await startSoakGateway({ ...shared, name, workers, redisUrl: link.url, own: { ...own } });
    return cleanUp.use(gateway);
  };
  const gateways = [
    await start('first', 2, links[0], { clients: keys.toClients() }),
    await start('second', 1, links[1], {}),
  ] as const;
  const parts = cleanUp.move();
  return {
    gateways,
    replicas,
    collector,
    recordFile,
    redis,
    links,
    journal,
    keys,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
