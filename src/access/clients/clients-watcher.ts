import { isDeepStrictEqual } from 'node:util';
import { type createInTurn, RepeatedCheck, StartError } from '#base';
import type { Log } from '#otel/base';
import { type ClientList, type ClientSources, readClients, readVersion } from './read-clients.ts';

export interface ClientsWatcherCollaborators {
  /** How often the file is looked at. */
  readonly intervalMs: number;
  /** Checks run in turn with what else changes the configuration in effect. */
  readonly inTurn: ReturnType<typeof createInTurn>;
  /** The configuration in effect. */
  readonly sources: () => ClientSources;
  /** Uses these clients for requests from now on. Rejects with a StartError if it cannot. */
  readonly use: (next: ClientList['clients']) => Promise<void>;
  readonly log: Log<'info'>;
}

/**
 * Looks at the file of clients again and again, and has new contents used. Contents that cannot be used are refused: the
 * former clients stay.
 */
export class ClientsWatcher {
  readonly #collaborators: ClientsWatcherCollaborators;
  readonly #checks: RepeatedCheck;
  #current: ClientList;
  /** The version of the file that was last read, whether it could be used or not. */
  #seenVersion: string | null;
  /** Why that version cannot be used; null: it is in use. */
  #refusal: StartError | null = null;

  constructor(current: ClientList, collaborators: ClientsWatcherCollaborators) {
    const { intervalMs, inTurn } = collaborators;
    this.#collaborators = collaborators;
    this.#current = current;
    this.#seenVersion = current.sources.fileVersion;
    this.#checks = new RepeatedCheck({ intervalMs, inTurn, check: () => this.#check() });
  }

  /** Why the file cannot be used; null: it is in use, or there is none. */
  get problem(): string | null {
    return this.#checks.problem;
  }

  start(): void {
    this.#checks.start();
  }

  stop(): void {
    this.#checks.stop();
  }

  /** Has clients used that a reload has read, if they differ from those in effect. Adds the key of a file that differs. */
  async adopt(next: ClientList, changedFiles?: Set<string>): Promise<void> {
    const { use, log } = this.#collaborators;
    const { sources } = this.#current;
    const { fileVersion } = next.sources;
    this.#seenVersion = fileVersion;
    this.#refusal = null;
    this.#checks.succeed();
    if (isDeepStrictEqual(sources, next.sources)) return;
    await use(next.clients);
    this.#current = next;
    if (fileVersion !== null && fileVersion !== sources.fileVersion) {
      changedFiles?.add('clients_file');
      log.info({ clients: next.clients?.length ?? 0 }, 'clients_file applied');
    }
  }

  async #check(): Promise<void> {
    const { sources } = this.#collaborators;
    const { clientsFile } = sources();
    if (clientsFile === null) return;
    const version = await readVersion(clientsFile);
    if (version === this.#seenVersion) {
      if (this.#refusal !== null) throw this.#refusal;
      return;
    }
    this.#seenVersion = version;
    try {
      await this.adopt(await readClients(sources()));
    } catch (error) {
      if (error instanceof StartError) this.#refusal = error;
      throw error;
    }
  }
}
