import { setImmediate } from 'node:timers/promises';
import type { Clock } from '#otel/base';

interface Sleeper {
  readonly wakeAtMs: number;
  readonly wake: () => void;
}

/** A clock that moves only when the test advances it, from the end of one sleep to the next. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const sleeper: Sleeper = {
        wakeAtMs: this.#nowMs + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', sleeper.wake);
    });
  }

  /** The remaining time of all sleeps, shortest first, without those that only wait for a signal. */
  get sleepsMs(): readonly number[] {
    return [...this.#sleepers]
      .map(({ wakeAtMs }) => wakeAtMs - this.#nowMs)
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
  }

  /** Runs everything until it sleeps, then moves time by `ms` and ends the sleeps that are due. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const next = [...this.#sleepers].sort((a, b) => a.wakeAtMs - b.wakeAtMs)[0];
      if (next === undefined || next.wakeAtMs > untilMs) break;
      this.#nowMs = next.wakeAtMs;
      next.wake();
      await settle();
    }
    this.#nowMs = untilMs;
  }
}

/** Resolves when all microtasks have run: one turn of the event loop later. */
export async function settle(): Promise<void> {
  await setImmediate();
}
