import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, type FakeReplicaOptions, startFakeReplica } from '#testkit/fake-replica.ts';
import { type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';

/** `name`: of the gateway and of its folder. The rest: as `startGateway` takes it. */
type HowStarted = { readonly name?: string } & NonNullable<Parameters<typeof startGateway>[3]>;

/** Where a scene plays: what it opens ends with it. */
export class Stage implements AsyncDisposable {
  readonly #opened = new AsyncDisposableStack();
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#opened.defer(() => rm(folder, { recursive: true, force: true }));
  }

  static async open(): Promise<Stage> {
    return new Stage(await mkdtemp(join(tmpdir(), 'spangate-conditions-')));
  }

  /** A folder of the scene. */
  async folder(name: string): Promise<string> {
    const path = join(this.#folder, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** Ends something with the scene. */
  use<T extends AsyncDisposable>(opened: T): T {
    return this.#opened.use(opened);
  }

  /** Does something when the scene ends. */
  defer(end: () => unknown): void {
    this.#opened.defer(async () => void (await end()));
  }

  async replica(name: string, options: FakeReplicaOptions = {}): Promise<FakeReplica> {
    return this.use(await startFakeReplica({ name, ...options }));
  }

  async collector(): Promise<FakeCollector> {
    return this.use(await startFakeCollector());
  }

  /**
   * A gateway in a process of its own, with free ports and short intervals. `config` replaces its top-level keys;
   * `replicas`: by default `a` and `b`, which serve.
   */
  async gateway(
    config: Readonly<Record<string, unknown>> = {},
    env: Readonly<Record<string, string>> = {},
    { name = 'gateway', ...how }: HowStarted = {},
  ): Promise<GatewayProcess> {
    const folder = await this.folder(name);
    const { gateway = {}, replicas, export: exported, ...rest } = config;
    const all = {
      gateway: { name, listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', ...(gateway as object) },
      state_dir: join(folder, 'state'),
      replicas: replicas ?? [toEntry(await this.replica('a')), toEntry(await this.replica('b'))],
      export: exported ?? { endpoint: (await this.collector()).url, interval: '100ms' },
      ...rest,
    };
    return this.use(await startGateway(folder, all, env, how));
  }

  /** Sends so many chats per second until the scene ends, or until `stop`. Answers of any kind are read and forgotten. */
  traffic(
    { url }: Pick<GatewayProcess, 'url'>,
    perSecond: number,
    {
      fields = {},
      ...body
    }: { readonly fields?: Readonly<Record<string, string>>; readonly [key: string]: unknown } = {},
  ): { stop(): void } {
    const ended = new AbortController();
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...fields },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }], ...body }),
      signal: ended.signal,
    };
    const send = () => fetch(`${url}/v1/chat/completions`, init).then((response) => response.arrayBuffer());
    const timer = setInterval(() => void send().catch(() => undefined), 1_000 / perSecond);
    const stop = () => {
      clearInterval(timer);
      ended.abort();
    };
    this.defer(stop);
    return { stop };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/** The entry of a replica in the configuration. It serves the model `m`. */
export function toEntry({ name, url }: { readonly name: string; readonly url: string }) {
  return { name, url, models: ['m'], engine: 'vllm' };
}
