/**
 * A ring of at most `capacity` items, first in, first out. Items are read from the head and keep their places
 * until they are removed, so that what is being sent still counts. A full queue refuses the newcomer.
 */
export class BoundedQueue<Item> {
  readonly capacity: number;
  readonly #places: (Item | undefined)[];
  #head = 0;
  #size = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#places = new Array<Item | undefined>(capacity);
  }

  /** How many items have a place. */
  get size(): number {
    return this.#size;
  }

  /** Appends an item, or answers false if every place is taken. */
  offer(item: Item): boolean {
    if (this.#size === this.capacity) return false;
    this.#places[(this.#head + this.#size) % this.capacity] = item;
    this.#size += 1;
    return true;
  }

  /** The oldest items, at most `count`, oldest first; they stay in the queue. */
  peek(count: number): Item[] {
    const items: Item[] = [];
    for (let offset = 0; offset < Math.min(count, this.#size); offset += 1) {
      const item = this.#places[(this.#head + offset) % this.capacity];
      if (item !== undefined) items.push(item);
    }
    return items;
  }

  /** Gives up the places of the oldest items, at most `count`. */
  remove(count: number): void {
    const removed = Math.min(count, this.#size);
    for (let offset = 0; offset < removed; offset += 1) {
      this.#places[(this.#head + offset) % this.capacity] = undefined;
    }
    this.#head = (this.#head + removed) % this.capacity;
    this.#size -= removed;
  }
}
