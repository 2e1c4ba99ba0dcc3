/** Who an event belongs to: a thread of a gateway, or an actor of the world. */
export interface Owner {
  readonly name: string;
  /** The events of an owner that has ended do not happen. */
  readonly hasEnded: boolean;
  /** Its events wait until then: simulated milliseconds. */
  readonly stalledUntilMs: number;
  /** Receives what one of its events throws. */
  onUncaught(error: unknown): void;
}

/** Something that will happen. */
export interface ScheduledEvent {
  atMs: number;
  /** Decides between events at the same time: the lower one comes first. */
  order: number;
  readonly owner: Owner;
  readonly label: string;
  readonly run: () => void;
  isCancelled: boolean;
}

interface Countdown {
  left: number;
  readonly owner: Owner;
  readonly label: string;
  readonly run: () => void;
}

/** Receives each event just before it happens. */
export type StepListener = (event: ScheduledEvent) => void;

/**
 * The simulated time, and all that will happen in it. Between two events no time passes; in an event neither. One event
 * is one callback of an event loop.
 */
export class Schedule {
  nowMs = 0;
  /** The number of events so far. It orders what happens at the same time. */
  step = 0;
  readonly #heap: ScheduledEvent[] = [];
  readonly #onStep: StepListener;
  #lastOrder = 0;
  #firstOrder = 0;
  #current: Owner | null = null;
  /** What comes after so many further steps of its owner. */
  #countdowns: readonly Countdown[] = [];

  constructor(onStep: StepListener) {
    this.#onStep = onStep;
  }

  /** The owner of the event that happens now, or happened last. */
  get current(): Owner | null {
    return this.#current;
  }

  /** Schedules an event. Events of the same time happen in the order of their calls. */
  after(delayMs: number, owner: Owner, label: string, run: () => void): ScheduledEvent {
    return this.#add(this.nowMs + Math.max(0, delayMs), ++this.#lastOrder, owner, label, run);
  }

  /** Schedules the very next event, before all others of this moment. */
  next(owner: Owner, label: string, run: () => void): ScheduledEvent {
    return this.#add(this.nowMs, --this.#firstOrder, owner, label, run);
  }

  /** Schedules the event that follows so many further steps of its owner. */
  afterSteps(steps: number, owner: Owner, label: string, run: () => void): void {
    if (steps === 0) this.next(owner, label, run);
    else this.#countdowns = [...this.#countdowns, { left: steps, owner, label, run }];
  }

  cancel(event: ScheduledEvent): void {
    event.isCancelled = true;
  }

  /** Lets the next event happen. Returns false if there is none, or none up to `untilMs`. */
  runNext(untilMs: number): boolean {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > untilMs) return false;
      this.#pop();
      const { owner } = event;
      if (event.isCancelled || owner.hasEnded) continue;
      if (owner.stalledUntilMs > event.atMs) {
        event.atMs = owner.stalledUntilMs;
        // Behind what is scheduled for that moment already: the events of a stalled thread keep their order.
        if (event.order < 0) event.order = ++this.#lastOrder;
        this.#push(event);
        continue;
      }
      this.#happen(event);
      return true;
    }
  }

  #happen(event: ScheduledEvent): void {
    this.nowMs = event.atMs;
    this.step++;
    this.#current = event.owner;
    this.#onStep(event);
    try {
      event.run();
    } catch (error) {
      event.owner.onUncaught(error);
    }
    if (this.#countdowns.length > 0) this.#count(event.owner);
  }

  #count(steppedOwner: Owner): void {
    for (const countdown of this.#countdowns) {
      if (countdown.owner !== steppedOwner) continue;
      countdown.left--;
      if (countdown.left === 0) this.next(countdown.owner, countdown.label, countdown.run);
    }
    this.#countdowns = this.#countdowns.filter(({ left }) => left > 0);
  }

  #add(atMs: number, order: number, owner: Owner, label: string, run: () => void): ScheduledEvent {
    const event = { atMs, order, owner, label, run, isCancelled: false };
    this.#push(event);
    return event;
  }

  #push(event: ScheduledEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as ScheduledEvent;
      if (!isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  /** Removes the first event. */
  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      if (left >= heap.length) break;
      const child =
        right < heap.length && isBefore(heap[right] as ScheduledEvent, heap[left] as ScheduledEvent)
          ? right
          : left;
      const below = heap[child] as ScheduledEvent;
      if (!isBefore(below, last)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
