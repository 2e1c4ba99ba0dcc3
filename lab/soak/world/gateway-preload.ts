import { writeFileSync } from 'node:fs';
import { isMainThread, type Worker } from 'node:worker_threads';

/*
 * Loaded into the gateway with `node --import`: writes again and again what its heaps hold to a file, and kills a worker
 * when the process gets SIGUSR2. Nothing of the gateway itself is changed.
 */

/** What the file holds, in bytes and counts, summed over the threads. */
export interface ThreadFigures {
  readonly heapUsed: number;
  readonly external: number;
  /** What keeps the event loop of the main thread busy: sockets, timers, listeners. */
  readonly resources: number;
  /** Workers that have been killed, and have ended. */
  readonly killed: number;
}

const PERIOD_MS = 1_000;
const path = process.env.SOAK_FIGURES_FILE;

if (isMainThread && path !== undefined) watch(path);

function watch(file: string): void {
  const serving = new Set<Worker>();
  const threads = new Set<Worker>();
  let killed = 0;
  process.on('worker', (worker) => {
    threads.add(worker);
    if (worker.threadName?.startsWith('worker ') === true) serving.add(worker);
    worker.once('exit', () => {
      threads.delete(worker);
      serving.delete(worker);
    });
  });
  // The latest: the oldest lives as long as the process, and shows whether it grows.
  process.on('SIGUSR2', () => {
    const worker = [...serving].at(-1);
    serving.delete(worker as Worker);
    void worker?.terminate().then(() => killed++);
  });
  const write = async () => {
    const read = [...threads].map((worker) => worker.getHeapStatistics().catch(() => null));
    const heaps = (await Promise.all(read)).filter((heap) => heap !== null);
    const main = process.memoryUsage();
    const figures: ThreadFigures = {
      heapUsed: heaps.reduce((sum, heap) => sum + heap.used_heap_size, main.heapUsed),
      external: heaps.reduce((sum, heap) => sum + heap.external_memory, main.external),
      resources: process.getActiveResourcesInfo().length,
      killed,
    };
    writeFileSync(file, JSON.stringify(figures));
  };
  writeFileSync(file, JSON.stringify({ heapUsed: 0, external: 0, resources: 0, killed }));
  setInterval(() => void write(), PERIOD_MS).unref();
}
