import type { Chance } from '../engine/chance.ts';

/** What wakes a thread. Nothing that it schedules happens after its end. */
interface WaitingThread {
  readonly hasEnded: boolean;
  readonly chance: Chance;
  later(label: string, delayMs: number, run: () => void): unknown;
}

interface Waiter {
  readonly thread: WaitingThread;
  readonly wake: () => void;
}

/** How long a thread takes to notice that it was woken: at most so many milliseconds. */
const LONGEST_WAKE_MS = 0.3;

/** The `Atomics` of the threads that run one copy of the code. */
export function createAtomics(
  current: () => WaitingThread & { readonly machine: { readonly futexes: Futexes } },
): typeof Atomics {
  type Words = Int32Array<SharedArrayBuffer>;
  return Object.create(Atomics, {
    waitAsync: {
      value: (words: Words, index: number, value: number) =>
        current().machine.futexes.wait(current(), words, index, value),
    },
    notify: {
      value: (words: Words, index: number, count?: number) =>
        current().machine.futexes.notify(words, index, count),
    },
  });
}

/**
 * Who waits for which words of shared memory on one machine. Node's own `Atomics.waitAsync` would wake the waiters of threads
 * that have ended, at a moment that the real machine decides.
 */
export class Futexes {
  readonly #waiters = new Map<SharedArrayBuffer, Map<number, Waiter[]>>();
  /** The first object for the memory of each later one. */
  readonly #originals = new Map<SharedArrayBuffer, SharedArrayBuffer>();

  /** Copies a value for another thread. Shared memory is the same memory, behind another object. */
  copy<T>(value: T): T {
    const copy = structuredClone(value);
    this.#link(value, copy);
    return copy;
  }

  /** `Atomics.waitAsync` of a thread. */
  wait(thread: WaitingThread, words: Int32Array<SharedArrayBuffer>, index: number, value: number): object {
    if (Atomics.load(words, index) !== value) return { async: false, value: 'not-equal' };
    const { promise, resolve } = Promise.withResolvers<'ok'>();
    this.#waitersOf(words, index).push({ thread, wake: () => resolve('ok') });
    return { async: true, value: promise };
  }

  /** `Atomics.notify`: wakes those that have waited longest. The waiters of a thread have ended with it. */
  notify(
    words: Int32Array<SharedArrayBuffer>,
    index: number,
    count: number = Number.POSITIVE_INFINITY,
  ): number {
    const waiters = this.#waitersOf(words, index);
    const living = waiters.splice(0).filter(({ thread }) => !thread.hasEnded);
    const woken = living.slice(0, count);
    waiters.push(...living.slice(count));
    for (const { thread, wake } of woken) {
      thread.later('woken', thread.chance.between(0.005, LONGEST_WAKE_MS), wake);
    }
    return woken.length;
  }

  #waitersOf({ buffer, byteOffset }: Int32Array<SharedArrayBuffer>, index: number): Waiter[] {
    const at = byteOffset + index * Int32Array.BYTES_PER_ELEMENT;
    const memory = this.#originals.get(buffer) ?? buffer;
    const inBuffer = this.#waiters.get(memory) ?? new Map<number, Waiter[]>();
    this.#waiters.set(memory, inBuffer);
    const waiters = inBuffer.get(at) ?? [];
    inBuffer.set(at, waiters);
    return waiters;
  }

  /** Finds the shared memory in a value and its copy: in members of objects, and under typed arrays. */
  #link(value: unknown, copy: unknown): void {
    if (value instanceof SharedArrayBuffer && copy instanceof SharedArrayBuffer) {
      this.#originals.set(copy, this.#originals.get(value) ?? value);
    } else if (ArrayBuffer.isView(value) && ArrayBuffer.isView(copy)) {
      this.#link(value.buffer, copy.buffer);
    } else if (typeof value === 'object' && value !== null) {
      const copied = copy as Readonly<Record<string, unknown>>;
      for (const [name, member] of Object.entries(value)) this.#link(member, copied[name]);
    }
  }
}
