const LOOK_MS = 100;

/** A timer that is so late shows that clients wait for each other. */
const LATE_MS = 30;

/** Whether the event loop of this thread has fallen behind. It is looked at from the first question on. */
export class LoopPressure {
  #timer: NodeJS.Timeout | null = null;
  #dueMs = 0;
  #isBusy = false;

  get isBusy(): boolean {
    if (this.#timer === null) {
      this.#dueMs = performance.now() + LOOK_MS;
      this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    }
    return this.#isBusy;
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#isBusy = false;
  }

  #look(): void {
    const nowMs = performance.now();
    this.#isBusy = nowMs - this.#dueMs > LATE_MS;
    this.#dueMs = nowMs + LOOK_MS;
  }
}
