/** How long an end may go unnoticed. Whoever waits pays for the looking; the requests that end do not. */
const LOOK_EVERY_MS = 50;

/** Waits at one time: each holds a connection, and the listener has a thousand. */
const MAX_WAITS = 500;

/** The waits for one thing. */
interface Watched {
  readonly isOver: () => boolean;
  readonly wakeUps: Set<() => void>;
}

/** The calls that wait for drained replicas to become idle: each replica is looked at once, however many wait. */
export class DrainWaits {
  readonly #watched = new Map<object, Watched>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Whether no further wait may begin. */
  get isFull(): boolean {
    return this.#count >= MAX_WAITS;
  }

  /**
   * Resolves when `isOver` says so, when the time is up or when whoever waits has left. `isOver` is asked for all
   * waits of a key together.
   */
  async wait(
    key: object,
    isOver: () => boolean,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (timeoutMs <= 0 || signal.aborted || isOver()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(resolve, timeoutMs);
    signal.addEventListener('abort', () => resolve(), { once: true });
    this.#add(key, isOver, resolve);
    try {
      await promise;
    } finally {
      clearTimeout(deadline);
      this.#remove(key, resolve);
    }
  }

  #add(key: object, isOver: () => boolean, wakeUp: () => void): void {
    const watched = this.#watched.get(key) ?? { isOver, wakeUps: new Set() };
    watched.wakeUps.add(wakeUp);
    this.#watched.set(key, watched);
    this.#count += 1;
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  #remove(key: object, wakeUp: () => void): void {
    const wakeUps = this.#watched.get(key)?.wakeUps;
    wakeUps?.delete(wakeUp);
    if (wakeUps?.size === 0) this.#watched.delete(key);
    this.#count -= 1;
    if (this.#count > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const { isOver, wakeUps } of this.#watched.values()) {
      if (isOver()) for (const wakeUp of wakeUps) wakeUp();
    }
  }
}
