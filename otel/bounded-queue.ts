/** How much a queue holds: `capacity` items which together, as `sizeOf` has it, are `capacityBytes` at most. */
export interface QueueBounds<Item> {
  readonly capacity: number;
  readonly capacityBytes: number;
  readonly sizeOf: (item: Item) => number;
}

/**
 * A ring of bounded length and weight, first in, first out. Items are read from the head and keep their places
 * until they are removed, so that what is being sent still counts. A full queue refuses the newcomer.
 */
export class BoundedQueue<Item> {
  readonly #bounds: QueueBounds<Item>;
  readonly #places: (Item | undefined)[];
  #head = 0;
  #size = 0;
  #bytes = 0;

  constructor(bounds: QueueBounds<Item>) {
    this.#bounds = bounds;
    this.#places = new Array<Item | undefined>(bounds.capacity);
  }

  /** How many items there is a place for, if they are not too heavy. */
  get capacity(): number {
    return this.#bounds.capacity;
  }

  /** How many items have a place. */
  get size(): number {
    return this.#size;
  }

  /** What they weigh together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How full the queue is, by number or by weight, whichever is more: from 0 to 1. */
  get fill(): number {
    return Math.max(this.#size / this.#bounds.capacity, this.#bytes / this.#bounds.capacityBytes);
  }

  /** Appends an item, or answers false if there is no room for it. */
  offer(item: Item): boolean {
    if (!this.#hasRoomFor(item)) return false;
    this.#places[(this.#head + this.#size) % this.capacity] = item;
    this.#add(item);
    return true;
  }

  /** Puts items before all others, in their order: the first ones, as many as there is room for. Tells how many. */
  prepend(items: readonly Item[]): number {
    let bytes = this.#bytes;
    const free = items.slice(0, this.capacity - this.#size);
    const fitting = free.findIndex((item) => {
      bytes += this.#bounds.sizeOf(item);
      return bytes > this.#bounds.capacityBytes;
    });
    const admitted = fitting === -1 ? free : free.slice(0, fitting);
    for (const item of admitted.toReversed()) {
      this.#head = (this.#head - 1 + this.capacity) % this.capacity;
      this.#places[this.#head] = item;
      this.#add(item);
    }
    return admitted.length;
  }

  /**
   * The oldest items, oldest first: at most `count`, and no more than weigh `maxBytes`, but one at least if there
   * is any. They stay in the queue.
   */
  peek(count: number, maxBytes = Number.POSITIVE_INFINITY): Item[] {
    const items: Item[] = [];
    let bytes = 0;
    for (let offset = 0; offset < Math.min(count, this.#size); offset += 1) {
      const item = this.#places[(this.#head + offset) % this.capacity];
      if (item === undefined) break;
      bytes += this.#bounds.sizeOf(item);
      if (bytes > maxBytes && items.length > 0) break;
      items.push(item);
    }
    return items;
  }

  /** Gives up the places of the oldest items, at most `count`. */
  remove(count: number): void {
    const removed = Math.min(count, this.#size);
    for (let offset = 0; offset < removed; offset += 1) {
      const place = (this.#head + offset) % this.capacity;
      const item = this.#places[place];
      if (item !== undefined) this.#bytes -= this.#bounds.sizeOf(item);
      this.#places[place] = undefined;
    }
    this.#head = (this.#head + removed) % this.capacity;
    this.#size -= removed;
  }

  #hasRoomFor(item: Item): boolean {
    const { capacity, capacityBytes, sizeOf } = this.#bounds;
    return this.#size < capacity && this.#bytes + sizeOf(item) <= capacityBytes;
  }

  #add(item: Item): void {
    this.#size += 1;
    this.#bytes += this.#bounds.sizeOf(item);
  }
}
