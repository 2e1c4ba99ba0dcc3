import { setImmediate } from 'node:timers/promises';
import type { Clock } from '#otel/clock.ts';

interface Sleeper {
  readonly wakeAtMs: number;
  readonly wake: () => void;
}

/** A clock that moves only when it is told to, and then from one sleeper's end to the next. */
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

  /** How long the sleepers still sleep, soonest first; those that wait for a signal alone are left out. */
  get sleepsMs(): readonly number[] {
    return [...this.#sleepers]
      .map(({ wakeAtMs }) => wakeAtMs - this.#nowMs)
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
  }

  /** Lets everything that is not asleep run until it sleeps, then moves time by `ms`, waking whoever is due. */
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

/** Until every promise that can resolve by itself has: one turn of the event loop empties the microtasks. */
export async function settle(): Promise<void> {
  await setImmediate();
}
