/** How often conditions are checked. The callers that wait pay for the checks; requests that end do not. */
const CHECK_EVERY_MS = 50;

/** The most waits at one time. Each holds a connection, and the listener accepts a thousand. */
const MAX_WAITS = 500;

/** The waits for one condition. */
interface Watch {
  readonly isOver: () => boolean;
  readonly wakeUps: Set<() => void>;
}

/** The calls that wait for drained replicas to become idle. Checks each replica once, however many calls wait for it. */
export class IdleWatcher {
  readonly #watches = new Map<object, Watch>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Takes a place for a wait, before anything is awaited. Null: there is none left. Disposing it gives it back. */
  takePlace(): Disposable | null {
    if (this.#count >= MAX_WAITS) return null;
    this.#count += 1;
    return {
      [Symbol.dispose]: () => {
        this.#count -= 1;
      },
    };
  }

  /**
   * Resolves when `isOver` returns true, when the time is up, or when the signal aborts. All waits with the same key
   * share the first one's `isOver`.
   */
  async waitUntil(
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
    const watch = this.#watches.get(key) ?? { isOver, wakeUps: new Set() };
    watch.wakeUps.add(wakeUp);
    this.#watches.set(key, watch);
    this.#timer ??= setInterval(() => this.#check(), CHECK_EVERY_MS);
  }

  #remove(key: object, wakeUp: () => void): void {
    const wakeUps = this.#watches.get(key)?.wakeUps;
    wakeUps?.delete(wakeUp);
    if (wakeUps?.size === 0) this.#watches.delete(key);
    if (this.#watches.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    for (const { isOver, wakeUps } of this.#watches.values()) {
      if (isOver()) for (const wakeUp of wakeUps) wakeUp();
    }
  }
}
