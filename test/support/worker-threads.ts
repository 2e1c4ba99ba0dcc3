import type { Worker } from 'node:worker_threads';
import { EventLog } from './event-log.ts';

/** The threads that serve clients, of the gateways that this process starts while it looks. */
export interface WorkerThreads extends Disposable {
  /** In the order of their start; those that have ended stay. */
  readonly threads: readonly Worker[];
  /** Resolves when at least this many were started. */
  untilStarted(count: number): Promise<void>;
  /** Ends one at once, whatever it does: as a crash of the engine would. Resolves when it has ended. */
  kill(index: number): Promise<void>;
  /** Makes one throw where nobody catches: its message has no order in it. Resolves when it has ended. */
  crash(index: number): Promise<void>;
}

/** Watches for worker threads until it is disposed. */
export function watchWorkerThreads(): WorkerThreads {
  const threads = new EventLog<Worker>();
  const onWorker = (worker: Worker) => {
    if (worker.threadName?.startsWith('worker ')) threads.push(worker);
  };
  process.on('worker', onWorker);
  const threadAt = (index: number): Worker => {
    const thread = threads.items[index];
    if (thread === undefined) throw new RangeError(`no thread ${index}`);
    return thread;
  };
  return {
    threads: threads.items,
    untilStarted: async (count) => void (await threads.count(count)),
    async kill(index) {
      await threadAt(index).terminate();
    },
    async crash(index) {
      const ended = new Promise((resolve) => threadAt(index).once('exit', resolve));
      threadAt(index).postMessage(null);
      await ended;
    },
    [Symbol.dispose]: () => void process.off('worker', onWorker),
  };
}
