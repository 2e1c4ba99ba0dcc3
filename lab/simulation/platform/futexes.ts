import type { Chance } from '../engine/chance.ts';

/** What wakes a thread. Nothing that it schedules happens after its end. */
interface WaitingThread {
  readonly chance: Chance;
  later(label: string, delayMs: number, run: () => void): unknown;
}

interface Waiter {
  readonly thread: WaitingThread;
  readonly wake: () => void;
}

/** How long a thread takes to notice that it was woken: at most so many milliseconds. */
const LONGEST_WAKE_MS = 0.3;

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

  /** The `Atomics` of a thread. */
  createAtomics(thread: WaitingThread): typeof Atomics {
    const waitAsync = (words: Int32Array<SharedArrayBuffer>, index: number, value: number) => {
      if (Atomics.load(words, index) !== value) return { async: false, value: 'not-equal' };
      const { promise, resolve } = Promise.withResolvers<'ok'>();
      this.#waitersOf(words, index).push({ thread, wake: () => resolve('ok') });
      return { async: true, value: promise };
    };
    const notify = (words: Int32Array<SharedArrayBuffer>, index: number): number => {
      const waiters = this.#waitersOf(words, index).splice(0);
      for (const waiter of waiters) {
        waiter.thread.later('woken', waiter.thread.chance.between(0.005, LONGEST_WAKE_MS), waiter.wake);
      }
      return waiters.length;
    };
    return Object.create(Atomics, { waitAsync: { value: waitAsync }, notify: { value: notify } });
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
