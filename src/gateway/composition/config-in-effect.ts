import type { Config } from '#config';
import type { EnvironmentSecrets } from '#config/secrets';

/** Uses what was prepared. Resolves when every thread does. Adds the keys whose files have other contents than before. */
type Apply = (changedFiles: Set<string>) => Promise<void>;

/** Reads what another configuration names, and checks it. Rejects if that cannot be used: then nothing changes. */
type Prepare = (next: Config, secrets: EnvironmentSecrets) => Promise<Apply>;

/** The configuration that the gateway uses now. A reload replaces it. */
export class ConfigInEffect {
  #config: Config;
  #loadedAt = new Date().toISOString();
  readonly #prepares: Prepare[] = [];

  constructor(config: Config) {
    this.#config = config;
  }

  get config(): Config {
    return this.#config;
  }

  /** When it came into effect: RFC 3339. */
  get loadedAt(): string {
    return this.#loadedAt;
  }

  /** Adds what another configuration concerns. Only the first to apply may refuse it when all others are prepared. */
  onChange(prepare: Prepare): void {
    this.#prepares.push(prepare);
  }

  /** Adds what only takes values from another configuration. */
  onValues(apply: (next: Config) => unknown): void {
    this.onChange(async (next) => async () => void (await apply(next)));
  }

  /**
   * Changes to another configuration: prepares it everywhere, then applies it in the order in which parts were added.
   * Resolves with the keys whose files have other contents than before.
   */
  async change(next: Config, secrets: EnvironmentSecrets): Promise<ReadonlySet<string>> {
    const applies = await Promise.all(this.#prepares.map((prepare) => prepare(next, secrets)));
    const changedFiles = new Set<string>();
    for (const apply of applies) await apply(changedFiles);
    this.#config = next;
    this.#loadedAt = new Date().toISOString();
    return changedFiles;
  }
}
