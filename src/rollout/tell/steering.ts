import type { RolloutFacts } from '#rollout-board/facts';

/** What was last asked of a rollout, by anybody. */
export type Ask = RolloutFacts['ask'];

/** Why a rollout ends before its end, although nothing is wrong with it. */
export type Ending =
  | { readonly kind: 'aborted'; readonly by: string | null }
  /** It goes on elsewhere. */
  | { readonly kind: 'taken_over'; readonly message: string }
  /** A gateway has heard of another rollout that began before it. It can go on later. */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * What others ask of a rollout while it runs: it may begin no further replica while it is paused, and ends when it is
 * aborted.
 */
export class Steering {
  readonly #ended = new AbortController();
  readonly #waiters = new Set<() => void>();
  #ask: Ask = { kind: 'go', version: 0, by: null };
  #ending: Ending | null = null;

  get ask(): Ask {
    return this.#ask;
  }

  get isPaused(): boolean {
    return this.#ask.kind === 'pause';
  }

  /** Null: it goes on. */
  get ending(): Ending | null {
    return this.#ending;
  }

  /** Aborts when the rollout must end. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Takes what a gateway has heard. Returns whether something else is asked than before. */
  hear(ask: Ask): boolean {
    const { kind, version } = this.#ask;
    const isNew = ask.version > version || (ask.kind === 'abort' && kind !== 'abort');
    if (!isNew || kind === 'abort') return false;
    this.#ask = ask;
    if (ask.kind === 'abort') this.#end({ kind: 'aborted', by: ask.by });
    for (const wake of this.#waiters) wake();
    return ask.kind !== kind;
  }

  /** Ends the rollout here, because a gateway does not let it go on. */
  refuse(kind: 'taken_over' | 'refused', message: string): void {
    this.#end({ kind, message });
  }

  /** Resolves when a further replica may be begun, or the signal aborts. */
  async untilMayGo(signal: AbortSignal): Promise<void> {
    while (this.isPaused && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.add(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      this.#waiters.delete(resolve);
    }
  }

  #end(ending: Ending): void {
    this.#ending ??= ending;
    this.#ended.abort();
  }
}
