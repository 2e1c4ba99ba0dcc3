/** Something whose bytes are ready to be sent. */
export interface Sendable {
  /** Sends them. Called once, and never throws. */
  sendOut(): void;
}

/** So many do not wait for others: more in a row save nothing. */
const MAX_WAITING = 32;

/**
 * What is sent when the event loop has looked at all that came: requests to replicas, and the ends of complete
 * responses. One after another they take less CPU than each between what else is to be done
 * (docs/decisions/0018). Where they come one by one nothing waits: the turn holds nothing else.
 */
export class Outbox {
  #waiting: Sendable[] = [];
  #immediate: NodeJS.Immediate | null = null;

  /** Has it sent in this turn of the event loop. */
  add(sendable: Sendable): void {
    this.#waiting.push(sendable);
    if (this.#waiting.length >= MAX_WAITING) this.flush();
    else this.#immediate ??= setImmediate(() => this.flush());
  }

  /** Sends all that waits. */
  flush(): void {
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#immediate = null;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const sendable of waiting) sendable.sendOut();
  }
}
