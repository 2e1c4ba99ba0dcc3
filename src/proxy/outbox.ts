/** Something whose bytes are ready to be sent. */
export interface Sendable {
  /** Sends them. Called once. */
  sendOut(): void;
}

/**
 * Sends requests to replicas and the ends of complete responses when the event loop has read everything that arrived.
 * To send them one after another costs less than each between other work (docs/decisions/0018), and a kept connection
 * that the replica has closed in the meantime is not used.
 */
export class Outbox {
  readonly #onDefect: (error: unknown) => void;
  #waiting: Sendable[] = [];
  #immediate: NodeJS.Immediate | null = null;

  /** @param onDefect called with what a Sendable throws; the others are still sent */
  constructor(onDefect: (error: unknown) => void) {
    this.#onDefect = onDefect;
  }

  /** Sends it at the end of this turn of the event loop. */
  add(sendable: Sendable): void {
    this.#waiting.push(sendable);
    this.#immediate ??= setImmediate(() => this.flush());
  }

  /** Sends everything that waits. */
  flush(): void {
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#immediate = null;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const sendable of waiting) {
      try {
        sendable.sendOut();
      } catch (error) {
        this.#onDefect(error);
      }
    }
  }
}
