import type { TimeSource } from '../../src/wire/deadline-clock.ts';

/** Time that the test advances. */
export class ScriptedTime implements TimeSource {
  ms = 0;
  readonly timers = new Set<() => void>();
  readonly #afterReads: (() => void)[] = [];

  nowMs(): number {
    return this.ms;
  }

  every(_intervalMs: number, callback: () => void): () => void {
    this.timers.add(callback);
    return () => this.timers.delete(callback);
  }

  afterReads(callback: () => void): void {
    this.#afterReads.push(callback);
  }

  /** Advances the time and runs timers. Reads happen before deadlines expire. */
  passTo(ms: number, read: () => void = () => undefined): void {
    this.ms = ms;
    for (const timer of this.timers) timer();
    read();
    for (const callback of this.#afterReads.splice(0)) callback();
  }
}
