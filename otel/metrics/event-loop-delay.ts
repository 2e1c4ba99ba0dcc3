import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** The memory in which each thread publishes the delays of its event loop. It can be passed to another thread. */
export type EventLoopDelayMemory = SharedArrayBuffer;

/** How late the timers of a thread run, of the last half minute or of the one before, whichever is greater. */
export interface EventLoopDelay {
  /** 0 is the main thread, 1 the first worker. */
  readonly thread: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** One row per thread: whether it has published, then the delays in nanoseconds. */
const ROW_CELLS = 4;

/** The histogram has the times between two ticks of a timer with this interval. */
const TICK_MS = 20;
const PUBLISH_INTERVAL_MS = 1_000;
const WINDOW_MS = 30_000;

/** Allocates the memory for the main thread and for `workerCount` further threads. */
export function allocateEventLoopDelays(workerCount: number): EventLoopDelayMemory {
  return new SharedArrayBuffer((workerCount + 1) * ROW_CELLS * BigInt64Array.BYTES_PER_ELEMENT);
}

/**
 * Measures the delays of the current thread and publishes them every second, until the returned function is called.
 * `thread`: 0 is the main thread, 1 the first worker.
 */
export function publishEventLoopDelay(memory: EventLoopDelayMemory, thread: number): () => void {
  const row = rowOf(memory, thread);
  const histogram = monitorEventLoopDelay({ resolution: TICK_MS });
  histogram.enable();
  let previous: readonly number[] = [];
  let windowStartMs = performance.now();
  const publish = () => {
    const current = [histogram.percentile(50), histogram.percentile(99), histogram.max].map(toDelayNs);
    for (const [index, delayNs] of current.entries()) {
      Atomics.store(row, index + 1, BigInt(Math.round(Math.max(delayNs, previous[index] ?? 0))));
    }
    Atomics.store(row, 0, 1n);
    if (performance.now() - windowStartMs < WINDOW_MS) return;
    windowStartMs = performance.now();
    previous = current;
    histogram.reset();
  };
  const timer = setInterval(publish, PUBLISH_INTERVAL_MS).unref();
  return () => {
    clearInterval(timer);
    histogram.disable();
  };
}

/** Removes the delays of a thread that has ended. */
export function clearEventLoopDelay(memory: EventLoopDelayMemory, thread: number): void {
  Atomics.store(rowOf(memory, thread), 0, 0n);
}

/** The delays of all threads that run and have published some. */
export function readEventLoopDelays(memory: EventLoopDelayMemory): readonly EventLoopDelay[] {
  const threadCount = memory.byteLength / BigInt64Array.BYTES_PER_ELEMENT / ROW_CELLS;
  return Array.from({ length: threadCount }, (_, thread) => thread).flatMap((thread) => {
    const row = rowOf(memory, thread);
    const toMs = (cell: number) => Number(Atomics.load(row, cell)) / 1e6;
    if (Atomics.load(row, 0) === 0n) return [];
    return [{ thread, p50Ms: toMs(1), p99Ms: toMs(2), maxMs: toMs(3) }];
  });
}

function rowOf(memory: EventLoopDelayMemory, thread: number): BigInt64Array<SharedArrayBuffer> {
  return new BigInt64Array(memory, thread * ROW_CELLS * BigInt64Array.BYTES_PER_ELEMENT, ROW_CELLS);
}

/** A tick that is on time has the timer's interval. */
function toDelayNs(betweenTicksNs: number): number {
  return Math.max(0, betweenTicksNs - TICK_MS * 1e6);
}
