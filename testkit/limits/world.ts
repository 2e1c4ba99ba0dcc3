import { type FakeReplica, startFakeReplica } from '../fake-replica.ts';
import { exchangeRaw, postBytes } from '../raw-http.ts';
import { type StartedGateway, startGateway } from '../start-gateway.ts';

/** Sections of the configuration file. */
export type Sections = Readonly<Record<string, Readonly<Record<string, unknown>> | readonly string[]>>;

/** A gateway in this process, in front of one replica `a` with the model `m`. */
export interface ProbedGateway extends StartedGateway {
  readonly replica: FakeReplica;
}

/** What probes send to. */
export interface World {
  /** The gateway with these sections; the same one for the same sections. */
  gateway(sections?: Sections): Promise<ProbedGateway>;
}

const CHAT = postBytes('/v1/chat/completions', '{"model":"m"}');

/** The gateways of all probes. They stop with it. */
export class Gateways implements World, AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #started = new Map<string, Promise<ProbedGateway>>();

  gateway(sections: Sections = {}): Promise<ProbedGateway> {
    const key = JSON.stringify(sections);
    const started = this.#started.get(key) ?? this.#start(sections);
    this.#started.set(key, started);
    return started;
  }

  /** The status of a small request to each of the gateways. */
  async nextStatuses(): Promise<readonly number[]> {
    const gateways = await Promise.all(this.#started.values());
    return await Promise.all(gateways.map(async ({ url }) => (await exchangeRaw(url, CHAT)).status));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }

  async #start(config: Sections): Promise<ProbedGateway> {
    const replica = this.#stack.use(await startFakeReplica());
    const started = this.#stack.use(await startGateway({ replicas: [replica], config }));
    return Object.assign(started, { replica });
  }
}
