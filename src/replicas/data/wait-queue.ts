import { startDeadline } from '#otel/base';
import { isBefore, type WaitTable } from '#replicas/shared';
import type { Lease, NoLease } from './lease.ts';
import type { PickContext } from './open-candidates.ts';
import type { Rotation } from './rotation.ts';

/** How a wait ended: with a lease, with the reason why there is none, or `gone` because it was abandoned. */
export type WaitResult = Lease | NoLease | 'overloaded' | 'gone';

/** A request that waits for a replica. */
export interface Wait {
  readonly result: Promise<WaitResult>;
  /** Ends the wait, unless it has ended. */
  abandon(): void;
}

export interface WaitQueueCollaborators {
  readonly table: WaitTable;
  readonly worker: number;
  /** The rotation of a model, as of now. */
  readonly rotationOf: (model: string) => Rotation;
  readonly acquireFrom: (rotation: Rotation, context: PickContext) => Lease | NoLease | 'busy';
}

export interface WaitLimits {
  readonly timeoutMs: number;
  /** Requests that may wait, in all threads. */
  readonly capacity: number;
}

/** A waiting request. */
interface Waiter {
  readonly model: string;
  readonly context: PickContext & { readonly ticket: number };
  readonly end: (result: WaitResult) => void;
}

/**
 * The requests of one thread that wait because the replicas of their model are at their `max_inflight`. They are
 * served in the order of arrival; for each replica, the shared table keeps that order over all threads.
 */
export class WaitQueue {
  readonly #collaborators: WaitQueueCollaborators;
  /** The waiters of each rotation in the order of their tickets. */
  #waiters = new Map<Rotation, Set<Waiter>>();
  /** The tickets that this thread has in the shared table, by slot. */
  #heads: ReadonlyMap<number, number> = new Map();
  #isWatching = false;

  constructor(collaborators: WaitQueueCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Adds a request. `overloaded`: the queue is full; a wait that takes longer than `timeoutMs` ends with the same. */
  wait(model: string, context: Omit<PickContext, 'ticket'>, limits: WaitLimits): Wait | 'overloaded' {
    const { table, worker } = this.#collaborators;
    const { capacity, timeoutMs } = limits;
    const ticket = timeoutMs > 0 ? table.join(worker, capacity) : null;
    if (ticket === null) return 'overloaded';
    const { promise: result, resolve: end } = Promise.withResolvers<WaitResult>();
    const waiter: Waiter = { model, context: { ...context, ticket }, end };
    void result.then(startDeadline(timeoutMs, () => this.#expire(waiter)));
    this.#waitersLike(waiter).add(waiter);
    this.#publishHeads();
    // A replica may have become free before other threads could see this waiter.
    this.#serve();
    void this.#watch();
    return { result, abandon: () => this.#end(waiter, 'gone') };
  }

  /** Groups the waiters again, after the candidates of models have changed. */
  regroup(): void {
    const all = [...this.#waiters.values()].flatMap((waiters) => [...waiters]);
    all.sort((a, b) => (isBefore(a.context.ticket, b.context.ticket) ? -1 : 1));
    this.#waiters = new Map();
    for (const waiter of all) this.#waitersLike(waiter).add(waiter);
    this.#publishHeads();
    this.#serve();
  }

  #waitersLike({ model }: Waiter): Set<Waiter> {
    const rotation = this.#collaborators.rotationOf(model);
    const waiters = this.#waiters.get(rotation) ?? new Set();
    this.#waiters.set(rotation, waiters);
    return waiters;
  }

  /** Serves the waiters whenever a thread wakes the others, as long as there are any. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    while (this.#waiters.size > 0) {
      const seen = this.#collaborators.table.wakeCount;
      this.#serve();
      if (this.#waiters.size > 0) await this.#collaborators.table.untilWoken(seen);
    }
    this.#isWatching = false;
  }

  #serve(): void {
    while (this.#serveOne());
  }

  /** Ends the wait of the first waiter that can be served. Returns whether there was one. */
  #serveOne(): boolean {
    for (const [rotation, waiters] of this.#waiters) {
      for (const waiter of waiters) {
        const lease = this.#collaborators.acquireFrom(rotation, waiter.context);
        if (lease !== 'busy') {
          this.#end(waiter, lease);
          return true;
        }
        // The waiters behind this one want the same replicas, unless this one has tried some of them.
        if (waiter.context.tried.size === 0) break;
      }
    }
    return false;
  }

  /** Runs when everything that has arrived was read: after a stall of the event loop, it may have made room. */
  #expire(waiter: Waiter): void {
    this.#serve();
    this.#end(waiter, 'overloaded');
  }

  #end(waiter: Waiter, result: WaitResult): void {
    const { table, worker } = this.#collaborators;
    for (const [rotation, waiters] of this.#waiters) {
      if (!waiters.delete(waiter)) continue;
      if (waiters.size === 0) this.#waiters.delete(rotation);
      this.#publishHeads();
      table.leave(worker);
      // Waiters in other threads may have been blocked by this one only.
      table.wake();
      waiter.end(result);
      return;
    }
  }

  /** Writes this thread's first waiter for each replica into the shared table. */
  #publishHeads(): void {
    const { table, worker } = this.#collaborators;
    const heads = this.#findHeads();
    for (const slot of this.#heads.keys()) if (!heads.has(slot)) table.setHead(worker, slot, 0);
    for (const [slot, ticket] of heads) {
      if (this.#heads.get(slot) !== ticket) table.setHead(worker, slot, ticket);
    }
    this.#heads = heads;
  }

  #findHeads(): Map<number, number> {
    const heads = new Map<number, number>();
    for (const [rotation, waiters] of this.#waiters) {
      for (const { context } of waiters) {
        for (const replica of rotation.candidates) {
          const head = heads.get(replica.slot);
          const isFirst = head === undefined || isBefore(context.ticket, head);
          if (isFirst && !context.tried.has(replica)) heads.set(replica.slot, context.ticket);
        }
        // A waiter that takes any of the candidates is before all those behind it.
        if (context.tried.size === 0) break;
      }
    }
    return heads;
  }
}
