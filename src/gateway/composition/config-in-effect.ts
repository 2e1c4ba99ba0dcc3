import type { Config } from '#config';

/** The configuration that the gateway uses now. A reload replaces it. */
export class ConfigInEffect {
  #config: Config;
  #loadedAt = new Date().toISOString();

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

  replace(next: Config): void {
    this.#config = next;
    this.#loadedAt = new Date().toISOString();
  }
}
