import { isDeepStrictEqual } from 'node:util';
import type { Log } from '#otel/base';
import type { JwtKeys } from './jwks.ts';
import { isRemote, JwksError, readJwks, requireJwks, toShownSource } from './read-jwks.ts';

/** How often the keys are read again without a reason. A file is local. */
const INTERVAL_MS = { url: 300_000, file: 10_000 } as const;

/** While they cannot be read, they are asked for after these times. */
const RETRY_MS = { first: 1_000, longest: 10_000 } as const;

/** Tokens with unknown keys cause at most one reading in this time: anyone can make them up. */
const COOL_DOWN_MS = 30_000;

export interface JwksSourceCollaborators {
  readonly log: Log;
  /** Monotonic. */
  readonly nowMs?: () => number;
}

/**
 * The keys that verify tokens, kept up to date in the background. If they cannot be read, those that were read last stay
 * in use.
 */
export class JwksSource {
  readonly #collaborators: JwksSourceCollaborators;
  readonly #nowMs: () => number;
  #current: JwtKeys | null = null;
  #timer: NodeJS.Timeout | undefined;
  #retryMs: number = RETRY_MS.first;
  /** Has keys used for requests; null: it is not running, and what needs the keys takes `current`. */
  #use: ((keys: JwtKeys) => Promise<void>) | null = null;
  /** The reading under way. */
  #reading: Promise<void> | null = null;
  /** When an unknown key may cause the next reading. */
  #refreshableMs = Number.NEGATIVE_INFINITY;
  #problem: string | null = null;

  constructor(collaborators: JwksSourceCollaborators) {
    this.#collaborators = collaborators;
    this.#nowMs = collaborators.nowMs ?? (() => performance.now());
  }

  /** The keys as they are now; null: no tokens are accepted. */
  get current(): JwtKeys | null {
    return this.#current;
  }

  /** Why the keys could not be read; null: they could. `hasKeys`: whether former ones are in use. */
  get problem(): { readonly source: string; readonly text: string; readonly hasKeys: boolean } | null {
    if (this.#current === null || this.#problem === null) return null;
    const { source, keys } = this.#current;
    return { source: toShownSource(source), text: this.#problem, hasKeys: keys !== null };
  }

  /**
   * Reads the keys of a source for the first time. A server that does not answer leaves them null; for a file that
   * cannot be used it rejects with an UnusableSettingError.
   */
  async open(source: string | null): Promise<void> {
    if (source === null) return;
    if (!isRemote(source)) {
      this.#current = await this.#readOrRefuse(source);
      return;
    }
    this.#current = { source, keys: null };
    this.#warnIfPlain(source);
    await this.#read();
  }

  /** `use`: has these keys used for requests from now on. */
  start(use: (keys: JwtKeys) => Promise<void>): void {
    this.#use = use;
    this.#schedule();
  }

  stop(): void {
    this.#use = null;
    clearTimeout(this.#timer);
  }

  /**
   * Reads the keys because a token names one that is not known, unless that was done within the cool-down. Resolves when
   * it is done; never rejects.
   */
  async refresh(): Promise<void> {
    if (this.#reading !== null) return await this.#reading;
    const nowMs = this.#nowMs();
    if (nowMs < this.#refreshableMs) return;
    this.#refreshableMs = nowMs + COOL_DOWN_MS;
    await this.#read();
  }

  /**
   * Reads the keys that a reload needs, without using them, and rejects with a StartError if that fails. Those of the same
   * server are used at once; if it fails, the former ones stay, and the reload goes on.
   */
  async prepare(source: string | null): Promise<JwtKeys | null> {
    if (source === null) return null;
    if (source !== this.#current?.source || !isRemote(source)) return await this.#readOrRefuse(source);
    await this.#read();
    return this.#current;
  }

  /** Has prepared keys used. Adds the key of a file that has others than before. */
  async adopt(prepared: JwtKeys | null, changedFiles?: Set<string>): Promise<void> {
    const before = this.#current;
    const isSameSource = prepared?.source === before?.source;
    // Those of a server may have been read again since, and go on being read when that is due.
    if (isSameSource && (prepared === null || isRemote(prepared.source))) return;
    this.#current = prepared;
    this.#problem = null;
    this.#schedule();
    if (prepared === null || isDeepStrictEqual(prepared, before)) return;
    if (isSameSource) changedFiles?.add('jwt.jwks');
    else this.#warnIfPlain(prepared.source);
    await this.#use?.(prepared);
  }

  #warnIfPlain(source: string): void {
    if (!/^http:/i.test(source)) return;
    this.#collaborators.log.warn(
      { source: toShownSource(source) },
      'jwt.jwks is not https: who can change its answers can sign tokens',
    );
  }

  async #readOrRefuse(source: string): Promise<JwtKeys> {
    return { source, keys: (await requireJwks(source)).keys };
  }

  async #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = null;
      // Also after a reading for a token: if it failed, the next one is due soon.
      this.#schedule();
    });
    await this.#reading;
  }

  async #readOnce(): Promise<void> {
    const before = this.#current;
    if (before === null) return;
    const { log } = this.#collaborators;
    const source = toShownSource(before.source);
    try {
      const { keys, ignoredCount } = await readJwks(before.source);
      // A reload may have changed the source in the meantime.
      if (this.#current !== before) return;
      this.#problem = null;
      if (isDeepStrictEqual(keys, before.keys)) return;
      this.#current = { ...before, keys };
      log.info({ source, keys: keys.length, ignored: ignoredCount }, 'keys of JWTs read');
      await this.#use?.(this.#current);
    } catch (error) {
      if (!(error instanceof JwksError)) throw error;
      if (this.#current === before) this.#problem = error.message;
    }
  }

  /** The next reading in the background. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#use === null || this.#current === null) return;
    const { source, keys } = this.#current;
    const isFailing = keys === null || this.#problem !== null;
    const delayMs = isFailing ? this.#retryMs : INTERVAL_MS[isRemote(source) ? 'url' : 'file'];
    this.#retryMs = isFailing ? Math.min(2 * this.#retryMs, RETRY_MS.longest) : RETRY_MS.first;
    this.#timer = setTimeout(() => void this.#read(), delayMs).unref();
  }
}
