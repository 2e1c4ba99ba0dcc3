import { type SharedTable, tryIncrement } from '#shared-memory';

/** The tables of waiting requests for so many workers and slots. */
export function toWaitShapes(workerCount: number, slotCount: number) {
  return {
    /** One row. */
    queue: {
      rowCount: 1,
      columns: {
        /** A futex: goes up with every `wake`. */
        wakeCount: 'int32',
        /** Requests that wait, in all workers. */
        waiting: 'int32',
        lastTicket: 'int32',
      },
    },
    /** One row for each worker: requests that wait in it. */
    waitingByWorker: { rowCount: workerCount, columns: { waiting: 'int32' } },
    /** One row for each slot of each worker: the ticket of the worker's first waiter for the slot; 0 if there is none. */
    heads: { rowCount: workerCount * slotCount, columns: { ticket: 'int32' } },
  } as const;
}

type WaitTables = {
  readonly [Name in keyof ReturnType<typeof toWaitShapes>]: SharedTable<
    ReturnType<typeof toWaitShapes>[Name]['columns']
  >;
};

/**
 * What the threads of a gateway share about requests that wait because replicas are at their `max_inflight`: how many
 * there are, and each worker's first waiter for each replica. A ticket is a number in the order of arrival over all
 * threads. No thread blocks: those with waiting requests are woken through a futex.
 */
export class WaitTable {
  readonly #queue: WaitTables['queue'];
  readonly #waitingByWorker: Int32Array;
  readonly #heads: Int32Array;
  readonly #slotCount: number;

  constructor(tables: WaitTables, slotCount: number) {
    this.#queue = tables.queue;
    this.#waitingByWorker = tables.waitingByWorker.waiting;
    this.#heads = tables.heads.ticket;
    this.#slotCount = slotCount;
  }

  /** Requests that wait, in all threads. */
  get count(): number {
    return Atomics.load(this.#queue.waiting, 0);
  }

  /** Counts a request that begins to wait, and returns its ticket; null if `capacity` requests wait already. */
  join(worker: number, capacity: number): number | null {
    if (!tryIncrement(this.#queue.waiting, 0, capacity)) return null;
    Atomics.add(this.#waitingByWorker, worker, 1);
    // 0 means no ticket, so it is skipped when the numbers wrap around.
    return this.#takeTicket() || this.#takeTicket();
  }

  /** Counts a request of this worker that waits no longer. */
  leave(worker: number): void {
    Atomics.sub(this.#waitingByWorker, worker, 1);
    Atomics.sub(this.#queue.waiting, 0, 1);
  }

  /** Sets the ticket of this worker's first waiter for a replica; 0 if there is none. */
  setHead(worker: number, slot: number, ticket: number): void {
    Atomics.store(this.#heads, worker * this.#slotCount + slot, ticket);
  }

  /** Whether a request waits for a replica that comes before this ticket. Null: a new request, which comes last. */
  hasEarlierWaiter(slot: number, ticket: number | null): boolean {
    if (this.count === 0) return false;
    for (let row = slot; row < this.#heads.length; row += this.#slotCount) {
      const head = Atomics.load(this.#heads, row);
      if (head !== 0 && (ticket === null || isBefore(head, ticket))) return true;
    }
    return false;
  }

  /** Removes the waiting requests of a worker that ended. */
  clearWorker(worker: number): void {
    this.#heads.fill(0, worker * this.#slotCount, (worker + 1) * this.#slotCount);
    Atomics.sub(this.#queue.waiting, 0, Atomics.exchange(this.#waitingByWorker, worker, 0));
    this.wake();
  }

  /** Goes up with every `wake`. Read it before you look for a free replica. */
  get wakeCount(): number {
    return Atomics.load(this.#queue.wakeCount, 0);
  }

  /** Wakes the threads with waiting requests: a replica may have room. */
  wake(): void {
    if (this.count === 0) return;
    Atomics.add(this.#queue.wakeCount, 0, 1);
    Atomics.notify(this.#queue.wakeCount, 0);
  }

  /** Resolves when `wake` has been called since `wakeCount` was `seen`; at once if it has been already. */
  async untilWoken(seen: number): Promise<void> {
    await Atomics.waitAsync(this.#queue.wakeCount, 0, seen).value;
  }

  #takeTicket(): number {
    return (Atomics.add(this.#queue.lastTicket, 0, 1) + 1) | 0;
  }
}

/** Whether a ticket was taken before another one. Ticket numbers wrap around. */
export function isBefore(ticket: number, other: number): boolean {
  return ((ticket - other) | 0) < 0;
}
