import { isBefore, type WaitTable } from '../shared/wait-table.ts';
import type { Lease, NoLease } from './lease.ts';
import type { Asked, Rotation } from './rotation.ts';

/** How a wait ended: with a lease, or why there is none; `gone`: whoever waited has left. */
export type WaitResult = Lease | NoLease | 'overloaded' | 'gone';

/** A request that waits for a replica. */
export interface Wait {
  readonly result: Promise<WaitResult>;
  /** Ends the wait, if it has not ended: nobody wants the lease any more. */
  abandon(): void;
}

/** What a line works with. */
export interface WaitQueueCollaborators {
  readonly board: WaitTable;
  readonly worker: number;
  /** Who serves a model now. */
  readonly rotationOf: (model: string) => Rotation;
  readonly acquireFrom: (rotation: Rotation, asked: Asked) => Lease | NoLease | 'busy';
}

/** How long a request may wait, and how many may in all threads. */
export interface WaitBounds {
  readonly timeoutMs: number;
  readonly capacity: number;
}

/** A request in line. */
interface Waiter {
  readonly model: string;
  readonly asked: Asked & { readonly ticket: number };
  readonly end: (result: WaitResult) => void;
}

/**
 * The requests of one thread that wait because the replicas of their model are at their `max_inflight`. They are
 * served in the order in which they came; the board keeps that order over all threads, for each replica.
 */
export class WaitQueue {
  readonly #with: WaitQueueCollaborators;
  /** Who waits for whom, each in the order of tickets. */
  #lines = new Map<Rotation, Set<Waiter>>();
  /** The heads of the line that are on the board, by slot. */
  #heads: ReadonlyMap<number, number> = new Map();
  #isWatching = false;

  constructor(surroundings: WaitQueueCollaborators) {
    this.#with = surroundings;
  }

  /** Puts a request in line, for so long at most: then it is `overloaded`, as at once where as many wait as may. */
  wait(model: string, asked: Omit<Asked, 'ticket'>, bounds: WaitBounds): Wait | 'overloaded' {
    const { board, worker } = this.#with;
    const { capacity, timeoutMs } = bounds;
    const ticket = timeoutMs > 0 ? board.join(worker, capacity) : null;
    if (ticket === null) return 'overloaded';
    const { promise: result, resolve: end } = Promise.withResolvers<WaitResult>();
    const waiter: Waiter = { model, asked: { ...asked, ticket }, end };
    const timer = setTimeout(() => this.#end(waiter, 'overloaded'), timeoutMs);
    void result.then(() => clearTimeout(timer));
    this.#lineOf(waiter).add(waiter);
    this.#tellHeads();
    // Whatever came free before the others could know of this one is looked for now.
    this.#serve();
    void this.#watch();
    return { result, abandon: () => this.#end(waiter, 'gone') };
  }

  /** Takes over that models are served by others than before. */
  regroup(): void {
    const waiters = [...this.#lines.values()].flatMap((line) => [...line]);
    waiters.sort((a, b) => (isBefore(a.asked.ticket, b.asked.ticket) ? -1 : 1));
    this.#lines = new Map();
    for (const waiter of waiters) this.#lineOf(waiter).add(waiter);
    this.#tellHeads();
    this.#serve();
  }

  #lineOf({ model }: Waiter): Set<Waiter> {
    const rotation = this.#with.rotationOf(model);
    const line = this.#lines.get(rotation) ?? new Set();
    this.#lines.set(rotation, line);
    return line;
  }

  /** Serves whenever the bell rings, as long as somebody is in line. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    while (this.#lines.size > 0) {
      const heard = this.#with.board.bell;
      this.#serve();
      if (this.#lines.size > 0) await this.#with.board.untilRung(heard);
    }
    this.#isWatching = false;
  }

  #serve(): void {
    while (this.#serveOne());
  }

  /** Ends the wait of the first for whom there is something, and says whether there was one. */
  #serveOne(): boolean {
    for (const [rotation, line] of this.#lines) {
      for (const waiter of line) {
        const lease = this.#with.acquireFrom(rotation, waiter.asked);
        if (lease !== 'busy') {
          this.#end(waiter, lease);
          return true;
        }
        // What this one cannot have, those behind it cannot have either; one that tried some replicas may leave others.
        if (waiter.asked.tried.size === 0) break;
      }
    }
    return false;
  }

  #end(waiter: Waiter, result: WaitResult): void {
    const { board, worker } = this.#with;
    for (const [rotation, line] of this.#lines) {
      if (!line.delete(waiter)) continue;
      if (line.size === 0) this.#lines.delete(rotation);
      this.#tellHeads();
      board.leave(worker);
      // Others may have waited for no more than that this one does not come before them.
      board.ring();
      waiter.end(result);
      return;
    }
  }

  /** Brings to the board who is first for each replica. */
  #tellHeads(): void {
    const { board, worker } = this.#with;
    const heads = this.#findHeads();
    for (const slot of this.#heads.keys()) if (!heads.has(slot)) board.setHead(worker, slot, 0);
    for (const [slot, ticket] of heads) {
      if (this.#heads.get(slot) !== ticket) board.setHead(worker, slot, ticket);
    }
    this.#heads = heads;
  }

  #findHeads(): Map<number, number> {
    const heads = new Map<number, number>();
    for (const [rotation, line] of this.#lines) {
      for (const { asked } of line) {
        for (const replica of rotation.candidates) {
          const head = heads.get(replica.slot);
          const isFirst = head === undefined || isBefore(asked.ticket, head);
          if (isFirst && !asked.tried.has(replica)) heads.set(replica.slot, asked.ticket);
        }
        // Nobody behind one that would take any of them is the first for one.
        if (asked.tried.size === 0) break;
      }
    }
    return heads;
  }
}
