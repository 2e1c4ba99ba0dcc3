import { tryAddOne } from '../control/try-add-one.ts';

/** Words at the beginning of the board. */
const WORD = { bell: 0, waiting: 1, lastTicket: 2, count: 3 } as const;

/** Words of shared memory that a board takes. */
export function waitingBoardWords(workerCount: number, slotCount: number): number {
  return WORD.count + workerCount * (1 + slotCount);
}

/**
 * What the threads of a gateway tell each other of requests that wait because replicas are at their `max_inflight`:
 * how many there are, and of each thread the first in line for each replica. Tickets are numbers in the order of
 * arrival, over all threads. Nobody blocks: threads with somebody in line are woken by a bell.
 */
export class WaitTable {
  readonly #words: Int32Array;
  /** How many wait, by worker. */
  readonly #counts: Int32Array;
  /** One row a worker: the ticket of its first in line for each replica, 0 where nobody is. */
  readonly #heads: readonly Int32Array[];

  /** @param words as many as `waitingBoardWords` says, all zero before the first use */
  constructor(words: Int32Array, workerCount: number, slotCount: number) {
    this.#words = words.subarray(0, WORD.count);
    this.#counts = words.subarray(WORD.count, WORD.count + workerCount);
    const firstHead = WORD.count + workerCount;
    this.#heads = Array.from({ length: workerCount }, (_, worker) =>
      words.subarray(firstHead + worker * slotCount, firstHead + (worker + 1) * slotCount),
    );
  }

  /** Requests that wait, in all threads. */
  get waiting(): number {
    return Atomics.load(this.#words, WORD.waiting);
  }

  /** One request more waits, unless so many do already: then null. Returns its ticket. */
  join(worker: number, capacity: number): number | null {
    if (!tryAddOne(this.#words, WORD.waiting, capacity)) return null;
    Atomics.add(this.#counts, worker, 1);
    // 0 means nobody on the board.
    return this.#takeTicket() || this.#takeTicket();
  }

  /** One request of this worker waits no more. */
  leave(worker: number): void {
    Atomics.sub(this.#counts, worker, 1);
    Atomics.sub(this.#words, WORD.waiting, 1);
  }

  /** Tells the others who is the first of this worker's in line for a replica; 0: nobody. */
  setHead(worker: number, slot: number, ticket: number): void {
    const heads = this.#heads[worker];
    if (heads !== undefined) Atomics.store(heads, slot, ticket);
  }

  /** Whether somebody waits for a replica who came before this ticket; null: before a request that has none yet. */
  isAwaited(slot: number, ticket: number | null): boolean {
    if (this.waiting === 0) return false;
    for (const heads of this.#heads) {
      const head = Atomics.load(heads, slot);
      if (head !== 0 && (ticket === null || isBefore(head, ticket))) return true;
    }
    return false;
  }

  /** Takes out of line whoever waited in a worker that ended. */
  clearWorker(worker: number): void {
    this.#heads[worker]?.fill(0);
    Atomics.sub(this.#words, WORD.waiting, Atomics.exchange(this.#counts, worker, 0));
    this.ring();
  }

  /** Changes with every ring. To be read before looking whether there is something to be had. */
  get bell(): number {
    return Atomics.load(this.#words, WORD.bell);
  }

  /** Wakes the threads that have somebody in line: there may be something to be had. */
  ring(): void {
    if (this.waiting === 0) return;
    Atomics.add(this.#words, WORD.bell, 1);
    Atomics.notify(this.#words, WORD.bell);
  }

  /** Resolves when the bell has rung since it was at `heard`: at once if it has already. */
  async untilRung(heard: number): Promise<void> {
    await Atomics.waitAsync(this.#words, WORD.bell, heard).value;
  }

  #takeTicket(): number {
    return (Atomics.add(this.#words, WORD.lastTicket, 1) + 1) | 0;
  }
}

/** Whether a ticket was taken before another one; their numbers go round. */
export function isBefore(ticket: number, other: number): boolean {
  return ((ticket - other) | 0) < 0;
}
