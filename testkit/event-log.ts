/**
 * A growing list that tests wait for instead of sleeping. A wait ends with the push that fulfils its condition.
 */
export class EventLog<T> {
  readonly items: T[] = [];
  #taken = 0;
  readonly #waiters = new Set<() => void>();

  push(item: T): void {
    this.items.push(item);
    this.wake();
  }

  /** Checks every wait again, for conditions that depend on more than the list. */
  wake(): void {
    for (const look of [...this.#waiters]) look();
  }

  /** Resolves with the oldest item that `next` has not returned yet. */
  async next(): Promise<T> {
    const position = this.#taken++;
    await this.until(() => this.items.length > position);
    return this.items[position] as T;
  }

  /** Resolves with the list as soon as it has at least this many items. */
  async count(count: number): Promise<readonly T[]> {
    await this.until(() => this.items.length >= count);
    return this.items;
  }

  /** Resolves as soon as the condition holds after a push or a wake. */
  until(isMet: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!isMet()) return;
        this.#waiters.delete(look);
        resolve();
      };
      this.#waiters.add(look);
      look();
    });
  }
}
